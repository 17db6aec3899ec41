"""The state as moves see it: keys are loaded when asked for, and what changed is known, in-place changes included."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy
import pytest

from clew.errors import ValueNotStorable
from clew.model.values import decode, encode
from clew.protocol.state import StateView


class Log:
    """Committed state that counts how it is read."""

    def __init__(self, **values: Any) -> None:
        self.rows = {encode(key): encode(value) for key, value in values.items()}
        self.loads: list[Any] = []
        self.scans = 0

    def load(self, key: bytes) -> bytes | None:
        self.loads.append(decode(key))
        return self.rows.get(key)

    def load_all(self) -> list[tuple[bytes, bytes]]:
        self.scans += 1
        return sorted(self.rows.items())


def view(log: Log) -> StateView:
    return StateView(log.load, log.load_all)


def changes(state: StateView) -> dict[Any, Any]:
    return {decode(key): None if value is None else decode(value) for key, value in state.changes().items()}


def test_a_key_is_loaded_once_and_only_when_asked_for() -> None:
    log = Log(a=1, b=2)
    state = view(log)
    assert log.loads == []
    assert (state["a"], state["a"], state.get("c"), state.get("c", 9), "c" in state) == (1, 1, None, 9, False)
    assert log.loads == ["a", "c"]
    assert changes(state) == {}


def test_what_is_set_is_a_change_once() -> None:
    state = view(Log(a=1))
    state["a"] = 2
    state["b"] = None
    assert changes(state) == {"a": 2, "b": None}
    assert "b" in state
    assert changes(state) == {}


def test_a_value_that_is_set_to_what_it_was_is_no_change() -> None:
    state = view(Log(a=[1, 2]))
    state["a"] = [1, 2]
    assert changes(state) == {}
    state["a"] = (1, 2)  # Another value, with other bytes.
    assert changes(state) == {"a": (1, 2)}


def test_in_place_changes_are_found() -> None:
    state = view(Log(seen=[1], counts={"x": 1}))
    state["seen"].append(2)
    state["counts"]["y"] = {3}
    assert changes(state) == {"seen": [1, 2], "counts": {"x": 1, "y": {3}}}
    assert state["seen"] == [1, 2]
    assert changes(state) == {}  # Looked at, not changed.


def test_an_in_place_change_of_a_value_met_while_iterating_is_found() -> None:
    state = view(Log(a=[], b=[]))
    for key, value in state.items():
        if key == "b":
            value.append(1)
    assert changes(state) == {"b": [1]}


def test_a_deleted_key_is_gone_and_its_deletion_is_a_change() -> None:
    log = Log(a=1, b=2)
    state = view(log)
    del state["a"]
    assert "a" not in state
    assert list(state) == ["b"]
    with pytest.raises(KeyError):
        state["a"]
    assert state.changes() == {encode("a"): None}
    assert state.pop("a", "none") == "none"
    assert state.changes() == {}


def test_a_key_that_was_never_there_cannot_be_deleted() -> None:
    state = view(Log())
    with pytest.raises(KeyError):
        del state["a"]
    assert state.changes() == {}


def test_a_key_that_came_and_went_within_a_move_is_no_change() -> None:
    state = view(Log())
    state["a"] = 1
    del state["a"]
    assert state.changes() == {}


def test_a_deleted_key_that_is_set_again_is_a_change_if_it_differs() -> None:
    state = view(Log(a=1))
    del state["a"]
    state["a"] = 1
    assert state.changes() == {}
    del state["a"]
    state["a"] = 2
    assert changes(state) == {"a": 2}


def test_iteration_loads_everything_once_and_keeps_what_was_changed() -> None:
    log = Log(a=1, b=2, c=3)
    state = view(log)
    state["b"] = 20
    del state["c"]
    state["d"] = 4
    assert dict(state) == {"a": 1, "b": 20, "d": 4}
    assert (len(state), list(state)) == (3, ["a", "b", "d"])
    assert state.get("nowhere") is None  # Everything is known now.
    assert (log.scans, log.loads) == (1, ["b", "c", "d"])


def test_the_order_of_iteration_is_the_same_before_and_after_a_crash() -> None:
    log = Log()
    first = view(log)
    for key in ("zebra", "b", 3, "a", (1, 2), 1):
        first[key] = True
    before = list(first)
    log.rows.update({key: value for key, value in first.changes().items() if value is not None})
    successor = view(log)
    assert successor["zebra"]  # What was touched first does not come first.
    assert list(successor) == before
    assert [encode(key) for key in before] == sorted(log.rows)


def test_keys_that_python_calls_equal_are_one_key_also_after_a_crash() -> None:
    log = Log()
    state = view(log)
    state[1] = "one"
    state[True] = "uno"
    state[(2.0, "a")] = "two"
    log.rows.update({key: value for key, value in state.changes().items() if value is not None})
    successor = view(log)
    assert successor[1.0] == "uno"
    assert successor[(2, "a")] == "two"
    assert len(log.rows) == 2


def test_two_values_that_share_an_object_share_it_only_within_a_move() -> None:
    """After a crash they would not; so they do not before it either."""
    state = view(Log())
    state["a"] = state["b"] = shared = [1]
    shared.append(2)
    assert changes(state) == {"a": [1, 2], "b": [1, 2]}
    state["a"].append(3)
    shared.append(4)
    assert (state["a"], state["b"]) == ([1, 2, 3], [1, 2])
    assert changes(state) == {"a": [1, 2, 3]}


def test_what_is_durable_need_not_be_kept_in_memory() -> None:
    log = Log(**{f"key {number}": number for number in range(40)})
    state = StateView(log.load, log.load_all, kept_max=10)
    assert sum(state.values()) == sum(range(40))
    state["key 3"] = "changed"
    unsaved = state.changes()
    state.saved({})
    log.loads.clear()
    assert state["key 3"] == "changed"  # The log does not have it yet.
    assert state["key 4"] == 4
    assert log.loads == ["key 4"]
    log.rows.update({key: value for key, value in unsaved.items() if value is not None})
    state.saved(unsaved)
    assert len(state) == 40
    assert state["key 3"] == "changed"


def test_a_key_is_kept_until_its_last_change_is_durable() -> None:
    log = Log()
    state = StateView(log.load, log.load_all, kept_max=0)
    state["a"] = 1
    first = state.changes()
    state["a"] = 2
    second = state.changes()
    state.saved(first)
    assert state["a"] == 2
    assert log.loads == ["a"]  # When it was set; not since.
    log.rows.update({key: value for key, value in second.items() if value is not None})
    state.saved(second)
    assert state["a"] == 2
    assert log.loads == ["a", "a"]


def test_keys_and_values_of_all_storable_kinds() -> None:
    log = Log()
    state = view(log)
    written = {("a", 1): {1, 2}, None: Decimal("1.50"), b"raw": [{"x": (1,)}], 2.5: True, frozenset({1}): 2**80}
    state.update(written)
    log.rows.update({key: value for key, value in state.changes().items() if value is not None})
    assert dict(view(log)) == written


def test_numbers_of_numpy_are_stored_as_plain_ones() -> None:
    state = view(Log())
    state["sum"], state["count"], state["name"] = numpy.float64(1.5), numpy.int64(3), numpy.str_("x")
    assert changes(state) == {"sum": 1.5, "count": 3, "name": "x"}


def test_what_cannot_be_stored_is_refused_with_its_type() -> None:
    state = view(Log())
    state["a"] = object()
    with pytest.raises(ValueNotStorable, match="cannot store a value of type object"):
        state.changes()


def test_a_key_that_cannot_be_stored_is_refused_when_it_is_used() -> None:
    with pytest.raises(ValueNotStorable, match="type object"):
        view(Log())[object()]
