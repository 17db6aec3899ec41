"""Hashes of keys: the same everywhere and for ever, for one value and for columns, and equal for what is equal."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import uuid
from collections import Counter
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from clew.errors import MoveError
from clew.operators.hashing import hash_of, hashes_of

UTC = datetime.UTC
CET = datetime.timezone(datetime.timedelta(hours=1))
ID = uuid.UUID("12345678-1234-5678-1234-567812345678")


def test_hashes_never_change() -> None:
    """A log is continued with the hashes with which it was begun: whoever changes them moves keys to other replicas."""
    keys = [None, 0, 1, -1, 2**63, "", "a", "ä", b"a", 0.5, float("nan"), float("inf"), (1, "a"), {"a": 1}]
    assert [f"{hash_of(key):016x}" for key in keys] == PINNED
    moments = [datetime.datetime(2025, 1, 2, 3), datetime.date(2025, 1, 2), datetime.time(3), datetime.timedelta(1)]
    assert [f"{hash_of(key):016x}" for key in moments] == PINNED_MOMENTS


def test_hashes_are_the_same_in_every_process() -> None:
    code = "from clew.operators.hashing import hash_of; print(hash_of(('a', 1)), hash_of({'a', 'b', 'c'}))"
    shown = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert shown == {f"{hash_of(('a', 1))} {hash_of({'a', 'b', 'c'})}\n"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (5, 5.0),
        (True, 1),
        (0.0, -0.0),
        (Decimal("5.00"), 5),
        (Decimal("0.5"), 0.5),
        (2**70, 2.0**70),
        (-(2**63), -(2.0**63)),
        (2**63, 2.0**63),
        ((1, 2.0), (1.0, 2)),
        (datetime.datetime(2025, 1, 1, 12, tzinfo=UTC), datetime.datetime(2025, 1, 1, 13, tzinfo=CET)),
        (datetime.time(12, tzinfo=UTC), datetime.time(13, tzinfo=CET)),
        (pd.Timestamp(2025, 1, 1), datetime.datetime(2025, 1, 1)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (frozenset({1, 2}), {2, 1}),
    ],
)
def test_equal_keys_have_equal_hashes(one: Any, other: Any) -> None:
    assert one == other
    assert hash_of(one) == hash_of(other)


def test_scalars_of_other_libraries_are_what_they_stand_for() -> None:
    assert hash_of(pa.scalar(5)) == hash_of(pd.Series([5]).to_numpy()[0]) == hash_of(5)
    assert hash_of(pd.NaT) == hash_of(None)


def test_a_number_too_large_for_a_float_has_a_hash() -> None:
    assert hash_of(10**400) == hash_of(10**401) != hash_of(-(10**400))


def test_what_has_no_equality_to_rely_on_is_refused() -> None:
    with pytest.raises(
        MoveError, match=r"a key is of type object; expected None, a number, text, .* Let the key function"
    ):
        hash_of(object())


COLUMNS = {
    "int": pa.array([1, -1, None, 2**62, -(2**63)]),
    "int8": pa.array([1, -1, None], pa.int8()),
    "uint8": pa.array([1, 255], pa.uint8()),
    "uint64": pa.array([1, 2**63, 2**64 - 1, None], pa.uint64()),
    "double": pa.array([1.5, 1.0, -0.0, 0.0, float("nan"), float("inf"), -float("inf"), 1e300, 2.0**63, -(2.0**63)]),
    "half": pa.array([1.5, 2.0, None], pa.float16()),
    "bool": pa.array([True, False, None]),
    "text": pa.array(["a", "b", None, "a", "ä", ""]),
    "large text": pa.array(["a", None], pa.large_string()),
    "text view": pa.array(["a", None], pa.string_view()),
    "bytes": pa.array([b"a", None]),
    "fixed bytes": pa.array([b"abcd", None], pa.binary(4)),
    "dictionary": pa.array(["a", "b", None]).dictionary_encode(),
    "decimal": pa.array([Decimal("1.50"), Decimal("2.00"), None]),
    "moment": pa.array([datetime.datetime(2020, 1, 1, 3, 4, 5, 6), datetime.datetime(1900, 1, 1), None]),
    "moment with zone": pa.array([datetime.datetime(2020, 1, 1, tzinfo=CET)], pa.timestamp("us", "Europe/Berlin")),
    "seconds": pa.array([1, -1, None], pa.timestamp("s")),
    "nanoseconds": pa.array([-1500, 1500, -1, 0, None], pa.timestamp("ns")),
    "date": pa.array([datetime.date(2020, 1, 1), datetime.date(1900, 1, 1), None]),
    "date64": pa.array([datetime.date(2020, 1, 1)], pa.date64()),
    "time": pa.array([datetime.time(1, 2, 3, 4), None]),
    "duration": pa.array([datetime.timedelta(1, 2, 3), datetime.timedelta(-1), None]),
    "list": pa.array([[1, 2], None, []]),
    "struct": pa.array([{"a": 1}, None]),
    "null": pa.nulls(2),
    "uuid": pa.array([ID.bytes], pa.uuid()),
    "nothing": pa.array([], pa.int64()),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_a_column_has_the_hashes_of_its_values(column: pa.Array) -> None:
    assert hashes_of([column]).to_pylist() == [hash_of(value) for value in column.to_pylist()]
    halves = pa.chunked_array([column[: len(column) // 2], column[len(column) // 2 :]])
    assert hashes_of([halves]).to_pylist() == hashes_of([column]).to_pylist()


def test_several_columns_have_the_hashes_of_their_tuples() -> None:
    one, other = pa.array([1, 2, None]), pa.array(["a", None, "c"])
    assert hashes_of([one, other]).to_pylist() == [hash_of((1, "a")), hash_of((2, None)), hash_of((None, "c"))]
    assert hash_of((1, "a")) != hash_of(("a", 1))


@pytest.mark.parametrize("replicas", [2, 3, 8])
@pytest.mark.parametrize(
    "keys",
    [range(4000), range(0, 400_000, 100), [f"k{n}" for n in range(4000)], [n / 8 for n in range(4000)]],
    ids=["small numbers", "round numbers", "texts", "fractions"],
)
def test_keys_are_spread_evenly(keys: Any, replicas: int) -> None:
    found = Counter(hash_of(key) % replicas for key in keys)
    assert min(found.values()) > 0.85 * len(keys) / replicas
    assert len(found) == replicas


PINNED = [
    "6a09e667f3bcc909",
    "0000000000000000",
    "84dd63de15b83c8d",
    "846af04b0e660498",
    "2df57813e94bc094",
    "0000000000000000",
    "9bb69996078af87e",
    "a175e4e3ff2c8780",
    "9bb69996078af87e",
    "75d6e3984c571cdf",
    "0ac704e17e802709",
    "989ed77b1586bbfe",
    "ac772df7b2c46b13",
    "fe157094661471df",
]
PINNED_MOMENTS = [
    "97c9657eed4636e0",
    "3343a32e8d6f6f19",
    "a876432acb37ae67",
    "2a2ab8bc7af28f05",
]
