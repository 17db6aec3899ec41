"""Names that become ids: replicas, ports and channels.

An id is only ever compared together with the log's random id, which the log itself adds.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from clew.errors import BadName

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


class Replica(NamedTuple):
    """One running copy of an operator; the first one goes by the operator's name.

    >>> str(Replica("hourly", 0)), str(Replica("hourly", 2))
    ('hourly', 'hourly/2')
    """

    operator: str
    index: int = 0  # type: ignore[assignment]  # Hides tuple.index, which nobody needs here.

    def __str__(self) -> str:
        return self.operator if self.index == 0 else f"{self.operator}/{self.index}"


class Channel(NamedTuple):
    """The connection from an output port of one replica to an input port of another.

    >>> str(Channel(Replica("orders"), "out", Replica("hourly"), "in"))
    'orders.out->hourly.in'
    """

    sender: Replica
    output: str
    receiver: Replica
    input: str

    def __str__(self) -> str:
        return f"{self.sender}.{self.output}->{self.receiver}.{self.input}"


def check_name(what: str, name: object) -> str:
    """The name, if it can be part of an id.

    >>> check_name("operator", "hourly")
    'hourly'
    """
    if not (isinstance(name, str) and _NAME.match(name)):
        raise BadName(
            f"{what} name {name!r} cannot be used; expected a letter or underscore, followed by letters, digits, "
            f"underscores or hyphens. Choose such a name."
        )
    return name


def is_name(text: object) -> bool:
    """Whether a text can be part of an id.

    >>> is_name("hourly"), is_name("<lambda>")
    (True, False)
    """
    return isinstance(text, str) and _NAME.match(text) is not None


def parse_replica(text: str) -> Replica:
    """The replica that a text stands for.

    >>> parse_replica("hourly"), str(parse_replica("hourly/2"))
    (Replica(operator='hourly', index=0), 'hourly/2')
    """
    operator, _, index = text.partition("/")
    return Replica(operator, int(index or 0))


def split_port(text: object) -> tuple[str, str]:
    """The operator and the port, or connection, that a text such as `hourly.out` names.

    >>> split_port("hourly.out")
    ('hourly', 'out')
    """
    parts = text.split(".") if isinstance(text, str) else []
    if len(parts) != 2 or not all(map(is_name, parts)):
        raise BadName(
            f"{text!r} does not name a port; expected the name of an operator, a dot and the name of one of its ports, "
            f"as in 'hourly.out'. Write it so."
        )
    return parts[0], parts[1]
