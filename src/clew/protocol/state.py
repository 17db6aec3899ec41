"""The state as a user's move sees it: a map that loads keys when they are asked for and knows what has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from clew.model.values import decode, encode

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

    __slots__ = ("_encoded", "_is_loaded", "_load", "_load_all", "_touched", "_values")

    def __init__(
        self, load: Callable[[bytes], bytes | None], load_all: Callable[[], list[tuple[bytes, bytes]]]
    ) -> None:
        self._load = load
        self._load_all = load_all
        self._is_loaded = False
        self._values: dict[Any, Any] = {}
        """Values that are there; a key that was looked for and not found is in `_encoded` with None."""
        self._encoded: dict[Any, bytes | None] = {}
        self._touched: dict[Any, None] = {}

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
        return iter(sorted(self._values, key=encode))  # As the log orders them: the same before and after a crash.

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
                changed[encode(key)] = value
        self._touched.clear()
        return changed

    def _fetch(self, key: Any) -> None:
        data = None if self._is_loaded else self._load(encode(key))
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
