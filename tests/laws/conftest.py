"""How laws are tried: without a deadline, since machines differ, and printing what repeats a failure."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("clew", deadline=None, print_blob=True)
settings.load_profile("clew")
