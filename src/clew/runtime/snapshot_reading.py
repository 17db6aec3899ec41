"""Reading snapshots beside a run that goes on: the rows of several replicas, all of them as of one complete epoch.

A replica that stores an epoch removes what only those before the last complete one need, so what it has stored last
and the epoch before that can always be read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from clew.errors import RunError
from clew.log.contract import ReplicaRows
from clew.model.names import Replica

_TRIES = 100


def rows_together(
    replicas: Iterable[Replica], rows: Callable[[Replica], ReplicaRows], complete: Callable[[], int]
) -> tuple[int, dict[Replica, ReplicaRows]]:
    """The rows of replicas, and a complete epoch as of which all of them can be read.

    It is the last complete one, unless a replica stored it only after its rows were read.
    """
    replicas = list(replicas)
    for _ in range(_TRIES):
        found = {each: rows(each) for each in replicas}
        stored = [(each.counters.get("epoch", 0), each.counters.get("final", 0)) for each in found.values()]
        epoch = min([complete(), *(last for last, is_final in stored if not is_final)])
        if all(last - 1 <= epoch for last, _ in stored):
            return epoch, found
    raise RunError(
        f"the snapshots of {', '.join(map(str, replicas))} cannot be read together: their epochs end faster than they "
        f"are read; expected at least one of {_TRIES} tries to be quick enough. Ask again, or use a larger interval."
    )
