"""The Spark task that a host lives in: the function that Spark runs in a Python worker."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from clew.runtime.host import Host
from clew.runtime.spec import HostSpec

_FAREWELL_S = 0.2
_COLLECT_AT = (10_000, 20, 20)
"""A host keeps many small objects for a while, such as events that wait for others; not worth looking at so often."""


def serve(spec: HostSpec, rows: Iterable[Any]) -> Iterator[str]:
    """Runs a host until it ends; gives why.

    A host that cannot go on ends its whole process, so that nothing of it is left that could still act.
    """
    list(rows)
    sys.setswitchinterval(0.001)
    usual = gc.get_threshold()
    gc.set_threshold(*_COLLECT_AT)
    host = Host(spec)
    reason, _, _ = host.run()
    if reason in ("end", "refused") and host.close():
        gc.unfreeze()
        gc.set_threshold(*usual)  # Spark may use the process again.
        yield reason
        return
    time.sleep(_FAREWELL_S)  # What it said to the coordinator should arrive.
    os._exit(70)
