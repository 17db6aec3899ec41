"""Brief words for a trace: one line about an input, an effect or a transaction."""

from __future__ import annotations

from typing import Any

from clew.model.event import Event
from clew.model.history import Transaction
from clew.model.names import Channel
from clew.model.ranges import IdSet
from clew.model.values import decode
from clew.protocol import effects as does
from clew.protocol import inputs as was


def brief(value: Any) -> str:
    """A short line about a value.

    >>> from clew.model.names import Replica
    >>> brief(does.Hello(Channel(Replica("orders"), "out", Replica("hourly"), "in"), 2))
    'Hello(orders.out->hourly.in, 2)'
    """
    match value:
        case does.Commit():
            return f"Commit {brief(value.transaction)}"
        case was.Started():
            return f"Started({len(value.recovered.undone)} undone pairs{', cautious' if value.is_cautious else ''})"
        case Transaction():
            return _transaction(value)
        case Channel() | Event() | IdSet() | int() | float() | bool() | None:
            return str(value)
        case frozenset():  # Sorted, since the order of a set depends on PYTHONHASHSEED.
            return "{" + ", ".join(sorted(map(str, value))) + "}"
        case bytes():
            return repr(decode(value))
        case tuple() if type(value) is tuple:
            return "[" + ", ".join(brief(each) for each in value[:4]) + (", ..." if len(value) > 4 else "") + "]"
        case was.Choices() | was.Changes():
            return "..."
    names = getattr(value, "__dataclass_fields__", None)
    if names is None:
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."
    shown = (getattr(value, name) for name in names if name not in ("choices", "changes"))
    fields = ", ".join(brief(each) for each in shown if each != {})
    return f"{type(value).__name__}({fields})"


def _transaction(value: Transaction) -> str:
    parts = [f"{output.event.port}/{output.event.id}" for output in value.outputs]
    parts += [f"{pair.channel.input}/{pair.event} in set {pair.serial}" for pair in value.pairs]
    parts += [f"set {serial} done" for serial in (*value.closed, *value.forget_sets)]
    parts += [f"{name}={number}" for name, number in value.counters.items() if name.startswith(("written", "attempt"))]
    return "[" + ", ".join(parts) + "]"
