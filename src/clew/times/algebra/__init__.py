"""Time-aware operators: state machines over data and watermarks that compose; see docs/time-aware-operators.md."""

from clew.times.algebra.accumulated import Accumulated
from clew.times.algebra.batch import Batch
from clew.times.algebra.bulk import Bulk
from clew.times.algebra.histogram import CountEachPath, CountUpTo, TotalHistogram, histogram, path_histogram
from clew.times.algebra.incremental import Incremental, incremental_batches
from clew.times.algebra.join import JoinAt, join
from clew.times.algebra.logic import Composed, Logic, Machine, Skip, produce
from clew.times.algebra.mapping import Flatten, Map
from clew.times.algebra.predicates import (
    Late,
    Unfinished,
    first_late,
    first_unfinished,
    guarded,
    is_monotone,
    is_productive,
)
from clew.times.algebra.stream import DT, WM, Cyclic, TimedEvent
from clew.times.algebra.union import Union

__all__ = [
    "DT",
    "WM",
    "Accumulated",
    "Batch",
    "Bulk",
    "Composed",
    "CountEachPath",
    "CountUpTo",
    "Cyclic",
    "Flatten",
    "Incremental",
    "JoinAt",
    "Late",
    "Logic",
    "Machine",
    "Map",
    "Skip",
    "TimedEvent",
    "TotalHistogram",
    "Unfinished",
    "Union",
    "first_late",
    "first_unfinished",
    "guarded",
    "histogram",
    "incremental_batches",
    "is_monotone",
    "is_productive",
    "join",
    "path_histogram",
    "produce",
]
