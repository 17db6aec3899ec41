"""Python functions as sources and destinations: their author says what they promise."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from clew.connect.settings import counted, positive
from clew.errors import BuildError, MoveError, UnsafeWriteConnection
from clew.model.connection import Kind, WriteAction, WriteConnection
from clew.model.operator import Context
from clew.model.source import Source


def generator(f: Callable[[Any], Iterable[Any]], *, poll_s: float = 0.1) -> Source:
    """What a function yields: pairs of records and the offset after them; replayable.

    `f(offset)` goes on behind an offset that it yielded, or from the start when given None; it must give the same
    again. It yields None when there is nothing for the moment, and ends when nothing will follow.

    >>> def numbers(offset):
    ...     for number in range(offset or 0, 3):
    ...         yield [{"x": number}], number + 1
    >>> list(generator(numbers).read("all", 2))
    [([{'x': 2}], 3)]
    """
    return _Generator(f, poll_s)


def from_callable(
    f: Callable[..., Any], *, is_replayable: bool = False, count: int | None = None, poll_s: float = 0.1
) -> Source:
    """What a function answers, asked again and again; it answers None when there is nothing for the moment.

    Not replayable: `f()` answers with records, or with an iterator of several; each answer is stored in the log before
    an event of it leaves. What a crash cuts off before it is stored is asked for again. Replayable: `f(offset)` answers
    with a pair of records and the offset after them; it is given the offset of the last pair, or None at first. The
    source ends after `count` answers, or never.

    >>> answers = iter([[{"x": 1}], None])
    >>> list(from_callable(lambda: next(answers), count=2).read(1, None))
    [([{'x': 1}], 1)]
    """
    if is_replayable:
        return _Asked(f, count, poll_s)
    return _Answers(f, count, poll_s)


def call(
    f: Callable[[WriteAction], Any],
    kind: Kind | str | None = None,
    *,
    is_in: Callable[[WriteAction], bool] | None = None,
    system: Hashable = None,
) -> WriteConnection:
    """A function that performs write actions: `f(action)`, with `action.id` and `action.batch`; of the kind declared.

    `f` returns when the effect is durable. Conditional: it records `action.id` together with the effect, and does
    nothing when it is recorded. Checkable: `is_in(action)` says whether it is in. Idempotent: twice in a row is like
    once.

    >>> call(print, "idempotent").kind
    <Kind.IDEMPOTENT: 'idempotent'>
    """
    return _Call(f, kind, is_in, system)


class _Generator(Source):
    """A function that goes on from an offset."""

    def __init__(self, f: Callable[[Any], Any], poll_s: float) -> None:
        _check("generator", f)
        self.f = f
        self.poll_s = positive("generator()", "poll_s", poll_s)

    def __repr__(self) -> str:
        return f"<generator {_named(self.f)}>"

    def read(self, action: Any, offset: Any) -> Iterator[tuple[Any, Any] | None]:
        """What the function yields."""
        for item in self.f(offset):
            if item is not None and not (isinstance(item, tuple) and len(item) == 2):
                raise MoveError(
                    f"the function {_named(self.f)} of generator() yielded a {type(item).__name__}; expected a pair of "
                    f"records and the offset after them, or None. Write: yield records, offset."
                )
            yield item


class _Asked(_Generator):
    """A function that is asked for what follows an offset."""

    def __init__(self, f: Callable[[Any], Any], count: int | None, poll_s: float) -> None:
        super().__init__(f, poll_s)
        self.count = None if count is None else counted("from_callable()", "count", count)

    def read(self, action: Any, offset: Any) -> Iterator[tuple[Any, Any] | None]:
        """What the function answers; the offset also counts the answers."""
        given, last = offset or (0, None)
        while self.count is None or given < self.count:
            answer = self.f(last)
            if answer is None:
                yield None
                continue
            if not (isinstance(answer, tuple) and len(answer) == 2):
                raise MoveError(
                    f"the function {_named(self.f)} of from_callable() answered with a {type(answer).__name__}; "
                    f"expected a pair of records and the offset after them, or None, since it is declared replayable."
                )
            records, last = answer
            given += 1
            yield records, (given, last)


class _Answers(Source):
    """A function whose answers are stored first; each is a read action."""

    is_replayable = False

    def __init__(self, f: Callable[[], Any], count: int | None, poll_s: float) -> None:
        _check("from_callable", f)
        self.f = f
        self.count = None if count is None else counted("from_callable()", "count", count)
        self.poll_s = positive("from_callable()", "poll_s", poll_s)

    def __repr__(self) -> str:
        return f"<from_callable {_named(self.f)}>"

    def plan(self, ctx: Context) -> int | None:
        """The next answer, by its number."""
        planned: int = ctx.state.get("planned", 0)
        if planned == self.count:
            return None
        ctx.state["planned"] = planned + 1
        return planned + 1

    def read(self, action: Any, offset: Any) -> Iterator[tuple[Any, int] | None]:
        """The records of one answer."""
        while (answer := self.f()) is None:
            yield None
        yield from ((records, number) for number, records in enumerate(_several(answer), 1))


class _Call(WriteConnection):
    """A function that performs write actions."""

    def __init__(
        self,
        f: Callable[[WriteAction], Any],
        kind: Kind | str | None,
        is_in: Callable[[WriteAction], bool] | None,
        system: Hashable,
    ) -> None:
        _check("call", f)
        if kind not in tuple(Kind):
            raise UnsafeWriteConnection(
                f"call({_named(f)}) was given kind={kind!r}; expected 'conditional' (it records action.id together "
                f"with the effect and does nothing if it is recorded), 'checkable' (is_in= says whether an action is "
                f"in) or 'idempotent' (twice in a row is like once). Declare which of these it is: without one, a "
                f"crash could do an action twice or not at all."
            )
        self.kind = Kind(kind)
        if (self.kind is Kind.CHECKABLE) != (is_in is not None):
            raise UnsafeWriteConnection(
                f"call({_named(f)}) is declared {self.kind.value} and was given {'no' if is_in is None else 'an'} "
                f"is_in=; expected a function is_in(action) with kind 'checkable', and none otherwise. "
                f"{'Pass one' if is_in is None else 'Leave it out, or declare it checkable'}."
            )
        self.f = f
        self.system = system
        self._is_in = is_in

    def __repr__(self) -> str:
        return f"<call {_named(self.f)}>"

    def execute(self, action: WriteAction) -> None:
        """Calls the function."""
        self.f(action)

    def is_in(self, action: WriteAction) -> bool:
        """Asks the author's function."""
        assert self._is_in is not None
        return bool(self._is_in(action))


def _several(answer: Any) -> Iterator[Any]:
    return answer if isinstance(answer, Iterator) else iter((answer,))


def _check(where: str, f: object) -> None:
    if not callable(f):
        raise BuildError(f"{where}() was given a {type(f).__name__}; expected a function. Pass it first: {where}(f).")


def _named(f: object) -> str:
    return str(getattr(f, "__qualname__", type(f).__name__))
