"""Signed multisets: zeros vanish, equal elements are added, nothing changes in place."""

from __future__ import annotations

import pickle

import pytest

from clew.times import Changes


def test_equal_elements_are_added_and_zeros_dropped() -> None:
    changes = Changes([("a", 1), ("b", 2), ("a", -1), ("c", 0)])
    assert dict(changes) == {"b": 2}
    assert "a" not in changes
    assert changes.count("a") == 0
    with pytest.raises(KeyError):
        changes["a"]


def test_it_is_equal_to_what_has_the_same_counts() -> None:
    assert Changes({"a": 1}) == Changes([("a", 1)]) == {"a": 1}
    assert Changes({"a": 1}) != Changes({"a": 2})
    assert Changes() != 0
    assert not Changes()


def test_parts_of_one_sign() -> None:
    changes = Changes({"a": 2, "b": -3})
    assert changes.positive() == {"a": 2}
    assert changes.negative() == {"b": -3}


def test_only_changes_are_added() -> None:
    with pytest.raises(TypeError):
        Changes() + {"a": 1}  # type: ignore[operator]
    with pytest.raises(TypeError):
        Changes() - 1  # type: ignore[operator]


def test_it_can_be_sent() -> None:
    changes = Changes({("a", 1): 2})
    assert pickle.loads(pickle.dumps(changes)) == changes  # noqa: S301 (our own bytes)
