"""Laws of the encoding of values: what goes in comes out, and equal values have equal bytes."""

from __future__ import annotations

import copy
import datetime
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import ValueNotStorable
from clew.model.values import decode, encode

zones = st.integers(-1439, 1439).map(lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes)))
plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.datetimes(timezones=st.none() | zones)
    | st.dates()
    | st.times(timezones=st.none() | zones)
    | st.timedeltas()
    | st.decimals(allow_nan=False)
)
keys = st.recursive(plain, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=4), max_leaves=6)
values = st.recursive(
    keys | st.sets(keys, max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def exact(value: Any) -> Any:
    """The value with its types spelled out, so that 1, 1.0 and True differ."""
    match value:
        case dict():
            return "dict", [(exact(key), exact(item)) for key, item in value.items()]
        case list() | tuple():
            return type(value).__name__, [exact(item) for item in value]
        case set() | frozenset():
            return type(value).__name__, sorted((exact(item) for item in value), key=repr)
        case float():
            return "float", repr(value)
        case datetime.datetime() | datetime.time():
            return type(value).__name__, value.isoformat()
    return type(value).__name__, str(value)


@given(values)
def test_what_goes_in_comes_out(value: Any) -> None:
    assert exact(decode(encode(value))) == exact(value)


@given(values)
def test_equal_values_have_equal_bytes(value: Any) -> None:
    assert encode(copy.deepcopy(value)) == encode(value)
    assert encode(decode(encode(value))) == encode(value)


@given(st.lists(keys, max_size=6), st.randoms())
def test_the_order_of_a_set_does_not_matter(items: list[Any], chance: Any) -> None:
    shuffled = list(items)
    chance.shuffle(shuffled)
    one, other = dict.fromkeys(map(encode, items)), dict.fromkeys(map(encode, shuffled))
    assert encode({decode(data) for data in one}) == encode({decode(data) for data in other})


@given(keys, keys)
def test_different_keys_have_different_bytes(one: Any, other: Any) -> None:
    if encode(one) == encode(other):
        assert exact(one) == exact(other)


@given(st.lists(st.fixed_dictionaries({"x": st.integers(-(2**60), 2**60), "y": st.text() | st.none()}), min_size=1))
def test_records_come_out_as_they_went_in(rows: list[dict[str, Any]]) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=pa.schema({"x": pa.int64(), "y": pa.string()}))
    table = pa.Table.from_batches([batch, batch])
    assert decode(encode({"batch": batch}))["batch"].equals(batch)
    assert decode(encode([table]))[0].equals(table)


def test_not_a_number_comes_out_as_such() -> None:
    assert math.isnan(decode(encode(math.nan)))


@pytest.mark.parametrize("value", [object(), {"f": print}, [lambda: 1], 1j, range(3), "\ud800"])
def test_anything_else_is_refused_in_words(value: Any) -> None:
    with pytest.raises(ValueNotStorable, match="State, Input Set keys and notes may be None, bool, int"):
        encode(value)
