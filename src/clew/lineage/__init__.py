"""Lineage: which events an event came from."""
