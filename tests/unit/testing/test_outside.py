"""Simulated outside systems."""

from __future__ import annotations

import pytest

from clew.errors import BadName, ClewError
from clew.model.connection import Kind, WriteAction
from clew.model.event import as_batch
from clew.testing import Outside


def action(number: int, *xs: int) -> WriteAction:
    return WriteAction("log/report/0/to", number, as_batch([{"x": x} for x in xs]))


def test_connections_of_one_name_share_a_system() -> None:
    assert Outside("shop").writer().system == Outside("shop").reader().system == "shop"
    assert Outside("shop").writer().system != Outside("bank").writer().system


@pytest.mark.parametrize("kind", list(Kind))
def test_writers_of_each_kind(kind: Kind) -> None:
    assert Outside("shop").writer(str(kind)).kind is kind


def test_a_reader_sees_all_that_was_written() -> None:
    reader = Outside("shop").reader()
    found = as_batch(reader.read_simulated(None, [action(1, 1, 2), action(2, 3)]))
    assert found.to_pylist() == [{"x": 1}, {"x": 2}, {"x": 3}]


def test_a_reader_of_an_empty_system() -> None:
    assert as_batch(Outside("shop").reader().read_simulated(None, [])).num_rows == 0


def test_a_reader_with_a_function() -> None:
    reader = Outside("shop").reader(lambda query, applied: [{"asked": query, "writes": len(applied)}])
    assert reader.read_simulated("how many", [action(1, 1)]) == [{"asked": "how many", "writes": 1}]
    assert not reader.is_replayable
    assert Outside("shop").reader(replayable=True).is_replayable


def test_outside_the_simulator_there_is_nothing() -> None:
    shop = Outside("shop")
    with pytest.raises(ClewError, match=r"the write action log/report/0/to/1 reached the outside system 'shop' of cle"):
        shop.writer().execute(action(1, 1))
    with pytest.raises(ClewError, match="exists in the simulator only"):
        shop.writer("checkable").is_in(action(1, 1))
    with pytest.raises(ClewError, match=r"the query 'all' reached .*clew verify.*replace Outside\('shop'\)"):
        shop.reader().read("all")


def test_a_system_has_a_good_name() -> None:
    with pytest.raises(BadName, match="outside system name 'my shop'"):
        Outside("my shop")
