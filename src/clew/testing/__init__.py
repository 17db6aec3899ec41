"""What users need to test their own operators and pipelines: scripted sources, outside systems, operators alone."""

from clew.testing.alone import Alone
from clew.testing.outside import Outside
from clew.testing.run import Crash, Result, run, verify
from clew.testing.script import scripted
from clew.testing.time_properties import check_time_properties
from clew.testing.time_specifications import Specification
from clew.testing.time_streams import monotone_streams, random_streams

__all__ = [
    "Alone",
    "Crash",
    "Outside",
    "Result",
    "Specification",
    "check_time_properties",
    "monotone_streams",
    "random_streams",
    "run",
    "scripted",
    "verify",
]
