"""One local Spark for all tests that need a real one, with slots for the hosts of any of their pipelines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import psycopg
import pytest

from clew.runtime.session import SPARE_SLOTS, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOTS = 12
_numbers = count(1)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on this machine, with 12 slots; Java is told to compile quickly, since nothing here runs for long."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
    session = local_session("tests", SLOTS - SPARE_SLOTS)
    yield session
    session.stop()


@pytest.fixture
def dsn(postgres_dsn: str) -> str:
    """The connection string of a database that is empty."""
    name = f"spark{next(_numbers)}"
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return f"{postgres_dsn.rpartition('/')[0]}/{name}"
