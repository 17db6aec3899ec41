"""Traces: what a real run did, written beside its log while it does it, and read again to explain it."""
