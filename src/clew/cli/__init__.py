"""The command `clew`."""
