"""The stores that the suite runs on: in memory, in SQLite files, in a private PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.store.places import Place

from clew.log.contract import Store

_numbers = count(1)


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    return Place("sqlite", str(tmp_path / "log"))


@pytest.fixture
def postgres_place(request: pytest.FixtureRequest) -> Place:
    return Place("postgres", request.getfixturevalue("postgres_dsn"), f"s{next(_numbers)}")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def durable_place(request: pytest.FixtureRequest) -> Place:
    """A place where other processes find the log too."""
    place = request.getfixturevalue(f"{request.param}_place")
    assert isinstance(place, Place)
    return place


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Makes a store; every one of the contract's tests runs on every kind of store."""
    stores: list[Store] = []

    def make(description: dict[str, object] | None = None) -> Store:
        place = Place("memory", "") if request.param == "memory" else request.getfixturevalue(f"{request.param}_place")
        stores.append(place.create(description))
        return stores[-1]

    yield make
    for store in stores:
        store.close()
