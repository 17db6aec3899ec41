"""Events: a batch of records on its way from an output port, with a header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew.errors import MoveError

if TYPE_CHECKING:
    from clew.model.names import Replica

NO_ATTRIBUTES: Mapping[str, Any] = {}
BORDER = "clew-border"
"""The attribute of an epoch border: the epoch that ends there."""


class Event:
    """One event: who sent it, its number on that port, and its records.

    Ids count from 1 on each output port, without gaps. An end mark has no records and says that nothing follows; a
    border has none either, and says that an epoch ends.
    Events are never changed once made. `input` is the input port on which an operator received it.
    """

    __slots__ = (
        "_body",
        "_size",
        "_table",
        "attributes",
        "batch",
        "border",
        "id",
        "input",
        "is_end",
        "port",
        "sender",
        "time",
    )

    def __init__(
        self,
        sender: Replica,
        port: str,
        id: int,
        batch: pa.RecordBatch | None,
        *,
        time: Any = None,
        attributes: Mapping[str, Any] = NO_ATTRIBUTES,
    ) -> None:
        self.sender = sender
        self.port = port
        self.id = id
        self.batch = batch
        self.time = time
        self.attributes = attributes
        self.input = ""
        self.border: int = attributes.get(BORDER, 0) if batch is None else 0
        """Of an epoch border, the epoch that ends there; otherwise 0."""
        self.is_end = batch is None and not self.border
        self._table: pa.Table | None = None
        self._body: bytes | None = None
        self._size = -1

    def received(self, port: str) -> Event:
        """The same event as seen on an input port."""
        twin = Event(self.sender, self.port, self.id, self.batch, time=self.time, attributes=self.attributes)
        twin.input = port
        return twin

    @property
    def table(self) -> pa.Table:
        """The records as an Arrow table."""
        if self._table is None:
            if self.batch is None:
                raise MoveError(f"event {self} is {'a border' if self.border else 'an end mark'} and has no records")
            self._table = pa.Table.from_batches([self.batch])
        return self._table

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The records as dictionaries."""
        batch = self.batch
        if batch is None:
            return []
        if batch.num_rows == 1:  # As quick as one row should be.
            names = batch.schema.names
            if len(set(names)) == len(names):
                return [{name: column[0].as_py() for name, column in zip(names, batch.columns, strict=True)}]
        return batch.to_pylist()  # type: ignore[no-any-return]

    @property
    def body(self) -> bytes:
        """The records as bytes without their schema, made once."""
        if self._body is None:
            self._body = b"" if self.batch is None else self.batch.serialize().to_pybytes()
        return self._body

    @property
    def size(self) -> int:
        """About how many bytes its records take.

        >>> from clew.model.names import Replica
        >>> Event(Replica("a"), "out", 1, as_batch([{"x": 1}])).size < 500
        True
        """
        if self._size < 0:
            self._size = 0 if self.batch is None else pa.ipc.get_record_batch_size(self.batch)
        return self._size

    def same(self, other: Event) -> bool:
        """Whether both are the same event with the same contents.

        >>> from clew.model.names import Replica
        >>> one = Event(Replica("a"), "out", 1, as_batch([{"x": 1}]))
        >>> one.same(Event(Replica("a"), "out", 1, as_batch([{"x": 1}])))
        True
        """
        return self is other or (
            self.id == other.id
            and self.port == other.port
            and self.sender == other.sender
            and self.time == other.time
            and dict(self.attributes) == dict(other.attributes)
            and same_batch(self.batch, other.batch)
        )

    def __str__(self) -> str:
        return f"{self.sender}.{self.port}/{self.id}"

    def __repr__(self) -> str:
        return f"<Event {self}{' end' if self.is_end else f' border {self.border}' if self.border else ''}>"


def same_batch(one: pa.RecordBatch | None, other: pa.RecordBatch | None) -> bool:
    """Whether two batches, or two absences of one, are equal."""
    if one is None or other is None:
        return one is other
    return one is other or bool(one.equals(other))


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with dictionary columns (pandas calls them categories) decoded: their values travel by themselves."""
    if not any(type(each) is not pa.DataType and _has_dictionary(each) for each in batch.schema.types):
        return batch
    columns = [each.cast(_plain_type(each.type)) for each in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _fields(of: pa.DataType) -> list[pa.Field]:
    return [of.field(index) for index in range(of.num_fields)] if pa.types.is_nested(of) else []


def _has_dictionary(of: pa.DataType) -> bool:
    return pa.types.is_dictionary(of) or any(_has_dictionary(field.type) for field in _fields(of))


def _plain_type(of: pa.DataType) -> pa.DataType:
    """The type with all dictionaries in it replaced by their values."""
    if pa.types.is_dictionary(of):
        return of.value_type
    if not _has_dictionary(of):
        return of
    fields = [field.with_type(_plain_type(field.type)) for field in _fields(of)]
    if pa.types.is_struct(of):
        return pa.struct(fields)
    if pa.types.is_large_list(of):
        return pa.large_list(fields[0])
    if pa.types.is_fixed_size_list(of):
        return pa.list_(fields[0], of.list_size)
    if pa.types.is_map(of):
        return pa.map_(_plain_type(of.key_type), _plain_type(of.item_type), of.keys_sorted)
    if pa.types.is_list(of):
        return pa.list_(fields[0])
    raise MoveError(
        f"an event has a column of type {of}, whose dictionaries cannot be sent along. Convert it to plain values."
    )


EVENT_BYTES_MAX = 1 << 31
"""An event with more bytes than this cannot be sent; the limit leaves room for its header."""


def check_size(batch: pa.RecordBatch) -> None:
    """Raises if the records are too many for one event."""
    if batch.get_total_buffer_size() > EVENT_BYTES_MAX - 4096:  # Quick, but a slice counts as what it is cut from.
        size = pa.ipc.get_record_batch_size(batch)
        if size > EVENT_BYTES_MAX - 4096:
            raise MoveError(
                f"an event of {batch.num_rows} records would have {size} bytes; expected less than {EVENT_BYTES_MAX}. "
                f"Yield its records as several events."
            )


def as_batch(data: Any) -> pa.RecordBatch:
    """Records in any of the usual shapes as one Arrow record batch.

    >>> as_batch([{"item": "a", "amount": 2}]).num_rows
    1
    >>> as_batch({"item": ["a", "b"]}).num_rows
    2
    """
    match data:
        case pa.RecordBatch():
            return _plain(data)
        case pa.Table():
            batches = data.to_batches()
            if len(batches) > 1:
                batches = data.combine_chunks().to_batches()
            return _plain(batches[0] if batches else pa.RecordBatch.from_pylist([], schema=data.schema))
        case list():
            return pa.RecordBatch.from_pylist(data)
        case dict():
            return pa.RecordBatch.from_pydict(data)
    if type(data).__module__.startswith("pandas") and hasattr(data, "columns"):
        return as_batch(pa.Table.from_pandas(data, preserve_index=False))
    raise MoveError(
        f"an operator yielded a {type(data).__name__} as the records of an event; expected an Arrow table or record "
        f"batch, a list of dictionaries, a dictionary of columns or a pandas DataFrame. Yield one of these."
    )
