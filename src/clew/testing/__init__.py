"""What users need to test their own operators and pipelines: scripted sources, outside systems, operators alone."""

from clew.testing.alone import Alone
from clew.testing.outside import Outside
from clew.testing.run import Crash, Result, run, verify
from clew.testing.script import scripted

__all__ = ["Alone", "Crash", "Outside", "Result", "run", "scripted", "verify"]
