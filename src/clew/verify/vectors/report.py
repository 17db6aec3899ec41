"""What the replay of a vector file found: how many cases agree, and the first difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from clew.errors import ClewError


class BadVectors(ClewError):
    """A vector file that cannot be read; the message says where."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a case went another way: what the file expects there, what Clew's kernels gave."""

    case: str
    step: str
    expected: Any
    came: Any


@dataclass(frozen=True, slots=True)
class Report:
    """How many cases there are, how many agree, and the first that does not."""

    cases: int
    agreed: int
    first: Difference | None = None

    @property
    def is_good(self) -> bool:
        """Do all agree?"""
        return self.agreed == self.cases


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Turns whatever goes wrong while a part of a file is read into `BadVectors` that says where.

    >>> with reading("propagation[3]"), reading("graph"):
    ...     {}["domain"]
    Traceback (most recent call last):
    clew.verify.vectors.report.BadVectors: propagation[3]: graph: 'domain' is missing
    """
    try:
        yield
    except BadVectors as error:
        raise BadVectors(f"{where}: {error}") from error
    except KeyError as error:
        raise BadVectors(f"{where}: {error.args[0]!r} is missing") from error
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise BadVectors(f"{where}: does not have the form of its format: {error}") from error
    except ClewError as error:
        raise BadVectors(f"{where}: {error}") from error


Found: TypeAlias = tuple[str, Any, Any]
"""Of a difference, the step, what was expected, what came."""
Replay: TypeAlias = Callable[[], Found | None]


def replayed(name: str, replay: Replay) -> list[Difference]:
    """The difference, if there is one; an error of what is replayed is one, too."""
    try:
        found = replay()
    except (ClewError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        found = "replay", "no error", f"{type(error).__name__}: {error}"
    return [] if found is None else [Difference(name, *found)]
