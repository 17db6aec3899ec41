"""Learned types: what the columns of a text file are, kept as a plain value so that an offset can carry it.

A type is the name of an Arrow type, a list that holds the type of its elements, or a dictionary of fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from clew.errors import BuildError

Plain = Any
"""A type as a plain value, such as "int64", ["string"] or {"x": "double"}."""

_WITH_ZONE = re.compile(r"timestamp\[(s|ms|us|ns), tz=(.+)\]\Z")
_OF = {type(None): "null", bool: "bool", int: "int64", float: "double", str: "string"}
_INT64 = range(-(2**63), 2**63)


class Conflict(Exception):
    """Two types that no column can have at once."""


def plain_of(value: Any) -> Plain:
    """The type of a value that JSON can hold.

    >>> plain_of({"id": 7, "tags": ["new", None]})
    {'id': 'int64', 'tags': ['string']}
    """
    if type(value) is int and value not in _INT64:
        raise Conflict("a whole number of more than 64 bits")
    if type(value) is dict:
        return {name: plain_of(each) for name, each in value.items()}
    if type(value) is list:
        inner: Plain = "null"
        for each in value:
            inner = merged(inner, plain_of(each))
        return [inner]
    return _OF[type(value)]


def merged(one: Plain, other: Plain) -> Plain:
    """The type that holds the values of both; whole numbers become doubles, nothing else changes its type.

    >>> merged("int64", "double"), merged({"x": "null"}, {"x": "bool", "y": "string"})
    ('double', {'x': 'bool', 'y': 'string'})
    """
    if one == other or other == "null":
        return one
    if one == "null":
        return other
    if type(one) is dict and type(other) is dict:
        fields = dict(one)
        for name, each in other.items():
            fields[name] = merged(fields.get(name, "null"), each)
        return fields
    if type(one) is list and type(other) is list:
        return [merged(one[0], other[0])]
    if one in ("int64", "double") and other in ("int64", "double"):
        return "double"
    raise Conflict(f"{described(one)} before, {described(other)} here")


def described(plain: Plain) -> str:
    """The type in a word.

    >>> described("int64"), described(["string"])
    ('int64', 'list')
    """
    if isinstance(plain, str):
        return plain
    return "list" if isinstance(plain, list) else "struct"


def arrow_of(plain: Plain) -> pa.DataType:
    """The Arrow type.

    >>> str(arrow_of({"x": ["double"]}))
    'struct<x: list<item: double>>'
    """
    if isinstance(plain, dict):
        return pa.struct([(name, arrow_of(each)) for name, each in plain.items()])
    if isinstance(plain, list):
        return pa.list_(arrow_of(plain[0]))
    if found := _WITH_ZONE.match(plain):
        return pa.timestamp(found[1], found[2])
    return pa.type_for_alias(plain)


def schema_of(fields: Mapping[str, Plain], given: Mapping[str, pa.DataType]) -> pa.Schema:
    """The schema of columns with learned types, where the user has not given others."""
    return pa.schema([(name, given.get(name) or arrow_of(plain)) for name, plain in fields.items()])


class Columns:
    """What the user said about the columns: nothing, which ones, or which ones of which types."""

    def __init__(self, columns: Any = None) -> None:
        self.names: list[str] | None = None
        """The columns wanted, in this order; None: all that there are."""
        self.given: dict[str, pa.DataType] = {}
        if columns is None:
            return
        if isinstance(columns, Mapping):
            self.given = {name: _given(name, each) for name, each in columns.items() if each is not None}
        self.names = [columns] if isinstance(columns, str) else list(columns)
        if not self.names or not all(isinstance(name, str) for name in self.names):
            raise BuildError(
                f"files() was given columns={columns!r}; expected a list of column names, or a dictionary from names "
                f"to Arrow types such as {{'id': 'int64'}}, where None leaves the type to be found out."
            )


def _given(name: str, wanted: Any) -> pa.DataType:
    if isinstance(wanted, pa.DataType):
        return wanted
    try:
        return arrow_of(wanted)
    except (ValueError, TypeError, KeyError):
        raise BuildError(
            f"files(): column {name!r} was given the type {wanted!r}; expected an Arrow type, or the name of one such "
            f"as 'int64', 'double', 'string', 'bool', 'timestamp[us]' or 'date32'. Pass one of these."
        ) from None
