"""The state as a user's move sees it: a map that loads keys when they are asked for and knows what has changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from clew.model.values import decode, encode, encode_key

_PLAIN = (type(None), bool, int, float, str, bytes)


class StateView(MutableMapping[Any, Any]):
    """The state of one replica; `changes` says what a move changed, in-place changes of values included.

    >>> state = StateView({}.get, lambda: [])
    >>> state["seen"] = [1]
    >>> len(state.changes())
    1
    >>> state["seen"].append(2)
    >>> [decode(value) for value in state.changes().values()]
    [[1, 2]]
    """

    __slots__ = ("_encoded", "_is_loaded", "_load", "_load_all", "_touched", "_unsaved", "_values", "kept_max")

    def __init__(
        self,
        load: Callable[[bytes], bytes | None],
        load_all: Callable[[], list[tuple[bytes, bytes]]],
        kept_max: int = 10_000,
    ) -> None:
        self._load = load
        self._load_all = load_all
        self.kept_max = kept_max
        """How many keys are kept in memory; more only as long as their changes are not durable."""
        self._is_loaded = False
        self._values: dict[Any, Any] = {}
        """Values that are there; a key that was looked for and not found is in `_encoded` with None."""
        self._encoded: dict[Any, bytes | None] = {}
        self._touched: dict[Any, None] = {}
        self._unsaved: dict[bytes, deque[bytes | None]] = {}
        """Changes that may not be durable yet, oldest first; only for them is memory ahead of the log."""

    def __getitem__(self, key: Any) -> Any:
        if key not in self._encoded:
            self._fetch(key)
        value = self._values[key]
        if type(value) not in _PLAIN:
            self._touched[key] = None
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        if key not in self._encoded:
            self._fetch(key)
        self._values[key] = value
        self._touched[key] = None

    def __delitem__(self, key: Any) -> None:
        if key not in self._encoded:
            self._fetch(key)
        del self._values[key]
        self._touched[key] = None

    def __contains__(self, key: object) -> bool:
        if key not in self._encoded:
            self._fetch(key)
        return key in self._values

    def __iter__(self) -> Iterator[Any]:
        self._fetch_all()
        return iter(sorted(self._values, key=encode_key))  # The log's order: the same before and after a crash.

    def __len__(self) -> int:
        self._fetch_all()
        return len(self._values)

    def changes(self) -> dict[bytes, bytes | None]:
        """What changed since the last call, as the log stores it."""
        if not self._touched:
            return {}
        changed: dict[bytes, bytes | None] = {}
        for key in self._touched:
            value = encode(self._values[key]) if key in self._values else None
            if value != self._encoded.get(key):
                self._encoded[key] = value
                name = encode_key(key)
                changed[name] = value
                self._unsaved.setdefault(name, deque()).append(value)
                if value is not None and type(self._values[key]) not in _PLAIN:
                    self._values[key] = decode(value)  # What shares an object with it now would not after a crash.
        self._touched.clear()
        return changed

    def saved(self, changes: Mapping[bytes, bytes | None]) -> None:
        """These changes are durable; keys whose last change is durable need not be kept."""
        for name, value in changes.items():
            waiting = self._unsaved.get(name)
            while waiting and waiting.popleft() != value:
                pass
            if not waiting:
                self._unsaved.pop(name, None)
        if len(self._encoded) > self.kept_max and not self._touched:
            self._evict()

    def _evict(self) -> None:
        self._is_loaded = False
        surplus = len(self._encoded) - self.kept_max // 2
        for key in [each for each in self._encoded if encode_key(each) not in self._unsaved][:surplus]:
            del self._encoded[key]
            self._values.pop(key, None)

    def _fetch(self, key: Any) -> None:
        data = None if self._is_loaded else self._load(encode_key(key))
        self._encoded[key] = data
        if data is not None:
            self._values[key] = decode(data)

    def _fetch_all(self) -> None:
        if not self._is_loaded:
            for raw, data in self._load_all():
                key = decode(raw)
                if key not in self._encoded:
                    self._encoded[key] = data
                    self._values[key] = decode(data)
            self._is_loaded = True
