"""Numbers for what rows repeat: ports, channels and schemas are stored once and named by a number.

Only the owner of a log gives numbers; they become durable in the transaction that first uses them.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import pyarrow as pa

from clew.errors import LogDamaged, ValueNotStorable
from clew.log.sql import Session
from clew.model.names import Channel, Replica

_PORTS: Final = "SELECT id, operator, idx, name FROM ports WHERE {own}"
_CHANNELS: Final = "SELECT id, sender, sender_idx, output, receiver, receiver_idx, input FROM channels WHERE {own}"
_SCHEMAS: Final = "SELECT id, body FROM schemas WHERE {own}"

_Named = TypeVar("_Named")


class Numbers:
    """The owner's numbers, with those that the next transaction must store."""

    def __init__(self, session: Session) -> None:
        self._ports = {(Replica(operator, idx), name): id for id, operator, idx, name in session.query(_PORTS)}
        self._channels = {_channel(row): row[0] for row in session.query(_CHANNELS)}
        self._schemas = {bytes(body): id for id, body in session.query(_SCHEMAS)}
        self._latest_schema: tuple[pa.Buffer | None, int] = (None, 0)
        self.new_ports: list[tuple[int, str, int, str]] = []
        self.new_channels: list[tuple[int, str, int, str, str, int, str]] = []
        self.new_schemas: list[tuple[int, bytes]] = []

    def port(self, sender: Replica, name: str) -> int:
        """The number of an output port."""
        number = self._ports.get((sender, name))
        if number is None:
            number = self._ports[sender, name] = len(self._ports) + 1
            self.new_ports.append((number, *sender, name))
        return number

    def known_port(self, sender: Replica, name: str) -> int | None:
        """The number of an output port, if it has one."""
        return self._ports.get((sender, name))

    def channel(self, channel: Channel) -> int:
        """The number of a channel."""
        number = self._channels.get(channel)
        if number is None:
            number = self._channels[channel] = len(self._channels) + 1
            self.new_channels.append((number, *channel.sender, channel.output, *channel.receiver, channel.input))
        return number

    def schema(self, schema: pa.Schema) -> int:
        """The number of a schema. Its bytes are compared: comparing schemas that are new takes longer."""
        buffer = schema.serialize()
        latest, number = self._latest_schema
        if latest is not None and buffer.equals(latest):
            return number
        body = buffer.to_pybytes()
        known = self._schemas.get(body)
        if known is None:
            _check_storable(schema)
            known = self._schemas[body] = len(self._schemas) + 1
            self.new_schemas.append((known, body))
        self._latest_schema = (buffer, known)
        return known

    def settle(self) -> None:
        """The new numbers are durable."""
        self.new_ports, self.new_channels, self.new_schemas = [], [], []

    def undo(self) -> None:
        """The new numbers were not stored."""
        new_ports = {row[0] for row in self.new_ports}
        new_channels = {row[0] for row in self.new_channels}
        new_schemas = {row[0] for row in self.new_schemas}
        self._ports = {port: number for port, number in self._ports.items() if number not in new_ports}
        self._channels = {channel: number for channel, number in self._channels.items() if number not in new_channels}
        self._schemas = {body: number for body, number in self._schemas.items() if number not in new_schemas}
        self._latest_schema = (None, 0)
        self.settle()


class Names:
    """What the numbers in rows stand for; looked up again when a number is not known yet."""

    def __init__(self) -> None:
        self._ports: dict[int, tuple[Replica, str]] = {}
        self._channels: dict[int, Channel] = {}
        self._schemas: dict[int, pa.Schema] = {}

    def port(self, session: Session, number: int) -> tuple[Replica, str]:
        """The replica and port with this number."""
        if number not in self._ports:
            self._read_ports(session)
        return _known(self._ports, number, "port")

    def port_number(self, session: Session, sender: Replica, name: str) -> int | None:
        """The number of a port, if it has one."""
        for _ in range(2):
            for number, port in self._ports.items():
                if port == (sender, name):
                    return number
            self._read_ports(session)
        return None

    def channel(self, session: Session, number: int) -> Channel:
        """The channel with this number."""
        if number not in self._channels:
            self._channels = {row[0]: _channel(row) for row in session.query(_CHANNELS)}
        return _known(self._channels, number, "channel")

    def schema(self, session: Session, number: int) -> pa.Schema:
        """The schema with this number."""
        if number not in self._schemas:
            for id, body in session.query(_SCHEMAS):
                if id not in self._schemas:
                    self._schemas[id] = pa.ipc.read_schema(pa.py_buffer(body))
        return _known(self._schemas, number, "schema")

    def _read_ports(self, session: Session) -> None:
        self._ports = {id: (Replica(operator, idx), name) for id, operator, idx, name in session.query(_PORTS)}


def _channel(row: tuple[Any, ...]) -> Channel:
    _, sender, sender_idx, output, receiver, receiver_idx, input = row
    return Channel(Replica(sender, sender_idx), output, Replica(receiver, receiver_idx), input)


def _known(names: dict[int, _Named], number: int, what: str) -> _Named:
    try:
        return names[number]
    except KeyError:
        raise LogDamaged(
            f"a row names the {what} with number {number}, but the log holds no such {what}; its tables do not belong "
            f"together. Restore the log from a copy."
        ) from None


def _check_storable(schema: pa.Schema) -> None:
    """The bytes of a batch do not contain the dictionaries of its columns, so such columns would be lost."""
    for field in schema:
        if "dictionary<" in str(field.type):
            raise ValueNotStorable(
                f"column {field.name!r} of an event has the type {field.type}, which the log cannot hold; expected a "
                f"type without a dictionary. Cast the column to its value type (for pandas: astype(str))."
            )
