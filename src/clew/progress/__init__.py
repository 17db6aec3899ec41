"""Which times may still arrive where: propagation, exchange, and the tracker of a running pipeline."""
