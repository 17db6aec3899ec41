"""Sources: where a pipeline's events come from, as a sequence of read actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from clew.model.operator import Context


class Source:
    """Reads from the outside, one read action after another, each giving any number of events.

    A replayable source gives the same data again in the same order, possibly longer, from any offset that it
    yielded. The effect of a source that is not replayable is stored in the log first and only then turned into
    events.
    """

    outputs: Sequence[str] = ("out",)
    connection: str = "in"
    """The name of the read connection, as it appears in the log."""
    is_replayable: bool = True
    poll_s: float = 0.1
    """How long to wait before asking again, after `read` had nothing for the moment."""

    def open(self, ctx: Context) -> None:
        """Called once per incarnation, before any other move."""

    def plan(self, ctx: Context) -> Any:
        """The next read action, as a value that the log can hold, or None when there is none left.

        May use and change `ctx.state`. Unless overridden there is one action.
        """
        if ctx.state.get("planned"):
            return None
        ctx.state["planned"] = True
        return "all"

    def read(self, action: Any, offset: Any) -> Iterable[tuple[Any, Any] | None]:
        """Pairs (records, offset after them) from an offset on; None where there is nothing for the moment.

        The offset is None at the start of the action, else one that an earlier pair carried.
        """
        raise NotImplementedError
