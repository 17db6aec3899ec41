"""A private PostgreSQL server, and a schema of it for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from tests.postgres_server import NoPostgres, find_programs, postgres_server

_numbers = count(1)


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The connection string of a server that this test process owns."""
    try:
        find_programs()
    except NoPostgres as missing:
        if os.environ.get("CLEW_SKIP_POSTGRES") == "1":
            pytest.skip("CLEW_SKIP_POSTGRES=1")
        pytest.fail(str(missing), pytrace=False)
    with postgres_server() as dsn:
        yield dsn


@pytest.fixture
def dsn(postgres_dsn: str) -> str:
    """The connection string of a schema that is empty."""
    schema = f"connect{next(_numbers)}"
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    return f"{postgres_dsn}?options=-csearch_path%3D{schema}"
