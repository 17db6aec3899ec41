"""Being asked to stop: SIGINT and SIGTERM become one exception, so that a command can end in order."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """Somebody wants the command to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def exit_code(self) -> int:
        """What a shell expects of a command that a signal ended: 130 or 143.

        >>> Interrupted(signal.SIGTERM).exit_code
        143
        """
        return 128 + self.number


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Inside, the first signal raises `Interrupted`; later ones are only answered, so that the stop is not cut off."""
    is_asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal is_asked
        if is_asked:
            sys.stderr.write("clew: already stopping\n")
            return
        is_asked = True
        raise Interrupted(number)

    before = {each: signal.signal(each, ask) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextlib.contextmanager
def handlers_kept() -> Iterator[None]:
    """Puts the signal handlers back that something inside, such as a starting Spark, replaces by its own."""
    before = {each: signal.getsignal(each) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
