"""Taking turns: operators hosted in one process may share a connection, and each action needs it for itself."""

from __future__ import annotations

import threading
from types import TracebackType


class Turn:
    """A lock that can be copied and sent to another process, where nobody holds it.

    >>> import copy
    >>> with Turn() as turn, copy.deepcopy(turn):
    ...     pass
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[type[Turn], tuple[()]]:
        return Turn, ()

    def __enter__(self) -> Turn:
        self._lock.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
