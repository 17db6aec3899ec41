"""Names of ports as text."""

from __future__ import annotations

from typing import Any

import pytest

from clew.errors import BadName
from clew.model.names import is_name, split_port


def test_a_port_is_an_operator_a_dot_and_a_name() -> None:
    assert split_port("a-b.out2") == ("a-b", "out2")


@pytest.mark.parametrize("text", ["hourly", "a.b.c", ".out", "a.", "a b.c", "", None, 7])
def test_anything_else_is_refused(text: Any) -> None:
    with pytest.raises(
        BadName, match=r"does not name a port; expected the name of an operator, a dot and .*'hourly\.out'"
    ):
        split_port(text)


def test_is_name() -> None:
    assert is_name("clean_up-2")
    assert not is_name("2nd")
    assert not is_name(None)
