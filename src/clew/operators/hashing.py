"""Hashes of key values that are the same in every process and run, for one value and for whole columns.

Values that Python calls equal have equal hashes, whatever their type: an id that is 5 in one event and 5.0 in another
is one key (see decision 0007). A log that was written with these hashes can be continued only with the same ones, so
they never change; a test holds some of them fast.
"""

from __future__ import annotations

import datetime
import math
import struct
import uuid
import zlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.errors import MoveError

_MASK = (1 << 64) - 1
_FIRST = 0x9E3779B97F4A7C15
_SECOND = 0xB504F333F9DE6485
_FOLD = 0xC90FDAA22168C235
_NULL = 0x6A09E667F3BCC909
"""The hash of a value that is not there."""
_NAN = 0x7FF8 << 48
_LOW, _HIGH = -(2.0**63), 2.0**63
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


def hash_of(value: Any) -> int:
    """The hash of one value, from 0 to 2**64 - 1.

    >>> hash_of("a") == hash_of("a"), hash_of(5) == hash_of(5.0), hash_of(("a", 1)) == hash_of(["a", True])
    (True, True, True)
    """
    match value:
        case str():
            return _mixed(zlib.crc32(value.encode("utf-8", "surrogatepass")))
        case int():
            return _mixed(value & _MASK if _LOW <= value < _HIGH else _bits(value))
        case None:
            return _NULL
        case float():
            return _mixed(int(value) & _MASK if value.is_integer() and _LOW <= value < _HIGH else _bits(value))
        case bytes():
            return _mixed(zlib.crc32(value))
        case tuple() | list():
            return _folded(value)
        case Decimal():
            is_whole = value.is_finite() and value == value.to_integral_value()
            return hash_of(int(value) if is_whole else float(value))
        case datetime.datetime() if value != value:
            return _NULL  # NaT of pandas.
        case datetime.datetime():
            return _mixed((value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)) // _MICROSECOND & _MASK)
        case datetime.date():
            return _mixed((value.toordinal() - _EPOCH.toordinal()) & _MASK)
        case datetime.time():
            moment = datetime.datetime.combine(_EPOCH, value.replace(tzinfo=None))
            return _mixed((moment - _EPOCH - (value.utcoffset() or datetime.timedelta())) // _MICROSECOND & _MASK)
        case datetime.timedelta():
            return _mixed(value // _MICROSECOND & _MASK)
        case uuid.UUID():
            return _mixed(zlib.crc32(value.bytes))
        case dict():
            return _mixed(sum(_folded(item) for item in value.items()) & _MASK)
        case set() | frozenset():
            return _mixed(sum(map(hash_of, value)) & _MASK)
        case pa.Scalar():
            return hash_of(value.as_py())
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return hash_of(value.item())
    raise MoveError(
        f"a key is of type {type(value).__name__}; expected None, a number, text, bytes, a date or time, or a tuple, "
        f"list, set or dictionary of these, so that equal keys have equal hashes in every process. Let the key "
        f"function return one of these."
    )


def hashes_of(columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.UInt64Array:
    """The hash of each row of some columns: of the value, or of the tuple of values if there are several columns.

    >>> hashes_of([pa.array(["a", "b"])]).to_pylist() == [hash_of("a"), hash_of("b")]
    True
    """
    if len(columns) == 1:
        return _column(columns[0])
    folded = pa.repeat(pa.scalar(_start(len(columns)), pa.uint64()), len(columns[0]))
    for column in columns:
        folded = _mixed_all(pc.add(pc.multiply(folded, _u64(_FOLD)), _column(column)))
    return folded


def _start(length: int) -> int:
    return _NULL ^ length


def _folded(values: Sequence[Any]) -> int:
    folded = _start(len(values))
    for value in values:
        folded = _mixed((folded * _FOLD + hash_of(value)) & _MASK)
    return folded


def _mixed(number: int) -> int:
    """Spreads what is in a number over all its bits."""
    number = number * _FIRST & _MASK
    number = (number ^ number >> 32) * _SECOND & _MASK
    return number ^ number >> 29


def _mixed_all(numbers: pa.UInt64Array) -> pa.UInt64Array:
    numbers = pc.multiply(numbers, _u64(_FIRST))
    numbers = pc.multiply(pc.bit_wise_xor(numbers, pc.shift_right(numbers, _u64(32))), _u64(_SECOND))
    return pc.bit_wise_xor(numbers, pc.shift_right(numbers, _u64(29)))


def _u64(number: int) -> pa.UInt64Scalar:
    return pa.scalar(number, pa.uint64())


def _bits(value: float) -> int:
    """The bits of the nearest float, for numbers that are not whole or very large."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    return _NAN if math.isnan(number) else int.from_bytes(struct.pack(">d", number))


def _column(column: pa.Array | pa.ChunkedArray) -> pa.UInt64Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    numbers = _numbers(column)
    hashes = _distinct(column) if numbers is None else _mixed_all(numbers)
    return pc.fill_null(hashes, _u64(_NULL)) if hashes.null_count else hashes


def _numbers(column: pa.Array) -> pa.UInt64Array | None:
    """The number that stands for each value, before mixing, for types whose values are numbers to Arrow."""
    kind = column.type
    if pa.types.is_signed_integer(kind):
        return column.cast(pa.int64()).view(pa.uint64())
    if pa.types.is_boolean(kind):
        return column.cast(pa.uint64())
    if pa.types.is_uint64(kind):
        is_small = pc.less(column, _u64(1 << 63))
        return pc.if_else(is_small, column, column.cast(pa.float64(), safe=False).view(pa.uint64()))
    if pa.types.is_unsigned_integer(kind):
        return column.cast(pa.uint64())
    if pa.types.is_floating(kind):
        floats = column.cast(pa.float64())
        is_whole = pc.and_(
            pc.equal(pc.floor(floats), floats), pc.and_(pc.greater_equal(floats, _LOW), pc.less(floats, _HIGH))
        )
        whole = pc.if_else(is_whole, floats, 0.0).cast(pa.int64()).view(pa.uint64())
        bits = pc.if_else(pc.is_nan(floats), _u64(_NAN), floats.view(pa.uint64()))
        return pc.if_else(is_whole, whole, bits)
    if pa.types.is_timestamp(kind):
        moments = pc.floor_temporal(column, unit="microsecond") if kind.unit == "ns" else column
        return moments.cast(pa.timestamp("us", kind.tz)).view(pa.uint64())
    if pa.types.is_date(kind):
        return column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()).view(pa.uint64())
    return None


def _distinct(column: pa.Array) -> pa.UInt64Array:
    """By way of the distinct values, where Arrow can find them; there are often few of them."""
    if isinstance(column, pa.DictionaryArray):
        return _column(column.dictionary).take(column.indices)
    if any(is_text(column.type) for is_text in _TEXTS):
        encoded = column.dictionary_encode()
        distinct = encoded.dictionary.cast(pa.large_binary()).to_pylist()
        return _mixed_all(pa.array(map(zlib.crc32, distinct), pa.uint64())).take(encoded.indices)
    return pa.array([hash_of(value) for value in column.to_pylist()], pa.uint64())


_TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)
