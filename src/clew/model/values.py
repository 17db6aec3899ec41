"""Values as bytes: the safe, deterministic encoding of state, Input Set keys and notes.

Pickle would run code on reading, and a log may lie behind a socket, so values are msgpack with a few
extensions. Equal values have equal bytes as long as their dictionaries were filled in the same order.
"""

from __future__ import annotations

import datetime
import decimal
from typing import Any, Final

import msgpack
import pyarrow as pa

from clew.errors import ValueNotStorable

_TUPLE: Final = 1
_SET: Final = 2
_FROZENSET: Final = 3
_DATETIME: Final = 4
_DATE: Final = 5
_TIME: Final = 6
_TIMEDELTA: Final = 7
_DECIMAL: Final = 8
_BIG_INT: Final = 9
_RECORD_BATCH: Final = 10
_TABLE: Final = 11


def encode(value: object) -> bytes:
    """The bytes of a value.

    >>> decode(encode({"hour": (2025, 2), "rows": [1, 2.5, None]}))
    {'hour': (2025, 2), 'rows': [1, 2.5, None]}
    """
    try:
        return msgpack.packb(value, default=_pack, strict_types=True, use_bin_type=True)  # type: ignore[no-any-return]
    except (TypeError, OverflowError, ValueError, RecursionError) as error:
        raise ValueNotStorable(
            f"cannot store a value of type {type(value).__name__}: {error}. State, Input Set keys and notes may be "
            f"None, bool, int, float, str, bytes, list, tuple, dict, set, frozenset, date, time, datetime, timedelta, "
            f"Decimal, Arrow tables and record batches; convert anything else to these."
        ) from error


def encode_key(key: object) -> bytes:
    """The bytes of a key: the same for keys that Python calls equal, as a dictionary does.

    >>> encode_key(5.0) == encode_key(5), encode_key((True, "a")) == encode_key((1, "a"))
    (True, True)
    """
    if type(key) is not str and type(key) is not int:
        key = _canonical(key)
    return encode(key)


def _canonical(key: object) -> object:
    if type(key).__module__ == "numpy":
        key = _pack(key)
    match key:
        case bool():
            return int(key)
        case float() if key.is_integer():
            return int(key)
        case decimal.Decimal() if key.is_finite():
            return int(key) if key == int(key) else float(key) if decimal.Decimal(float(key)) == key else key
        case tuple():
            return tuple(_canonical(each) for each in key)
        case frozenset():
            return frozenset(_canonical(each) for each in key)
        case datetime.datetime() if key.tzinfo is not None:
            return key.astimezone(datetime.UTC)
    return key


def decode(data: bytes) -> Any:
    """The value that these bytes stand for.

    >>> decode(encode(2**70))
    1180591620717411303424
    """
    return msgpack.unpackb(data, ext_hook=_unpack, strict_map_key=False, raw=False, use_list=True)


def _pack(value: object) -> object:
    item = getattr(value, "item", None)
    if callable(item) and type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return item()  # NumPy scalars; some of their types are subclasses of plain ones.
    match value:
        case tuple():
            return msgpack.ExtType(_TUPLE, encode(list(value)))
        case frozenset():
            return msgpack.ExtType(_FROZENSET, encode(_sorted(value)))
        case set():
            return msgpack.ExtType(_SET, encode(_sorted(value)))
        case datetime.datetime():
            return msgpack.ExtType(_DATETIME, value.isoformat().encode())
        case datetime.date():
            return msgpack.ExtType(_DATE, value.isoformat().encode())
        case datetime.time():
            return msgpack.ExtType(_TIME, value.isoformat().encode())
        case datetime.timedelta():
            return msgpack.ExtType(_TIMEDELTA, encode([value.days, value.seconds, value.microseconds]))
        case decimal.Decimal():
            return msgpack.ExtType(_DECIMAL, str(value).encode())
        case pa.RecordBatch():
            return msgpack.ExtType(_RECORD_BATCH, _stream(value.schema, [value]))
        case pa.Table():
            return msgpack.ExtType(_TABLE, _stream(value.schema, value.to_batches()))
        case bytearray() | memoryview():
            return bytes(value)
        case int() if type(value) is int:  # Beyond 64 bits, or msgpack would not have asked.
            return msgpack.ExtType(_BIG_INT, str(value).encode())
        case bool() | int() | float() | str() | bytes() | list() | dict():
            raise TypeError(f"{type(value).__name__} is a subclass of a plain type")
    raise TypeError(f"{type(value).__name__} is not storable")


def _unpack(code: int, data: bytes) -> object:
    match code:
        case 1:
            return tuple(decode(data))
        case 2:
            return set(decode(data))
        case 3:
            return frozenset(decode(data))
        case 4:
            return datetime.datetime.fromisoformat(data.decode())
        case 5:
            return datetime.date.fromisoformat(data.decode())
        case 6:
            return datetime.time.fromisoformat(data.decode())
        case 7:
            days, seconds, microseconds = decode(data)
            return datetime.timedelta(days, seconds, microseconds)
        case 8:
            return decimal.Decimal(data.decode())
        case 9:
            return int(data.decode())
        case 10:
            return pa.ipc.open_stream(data).read_next_batch()
        case 11:
            return pa.ipc.open_stream(data).read_all()
    raise ValueNotStorable(f"the stored value has the unknown extension {code}; it was written by a newer version")


def _sorted(values: frozenset[object] | set[object]) -> list[object]:
    return sorted(values, key=encode)


def _stream(schema: pa.Schema, batches: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
