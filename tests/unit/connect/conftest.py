"""A private PostgreSQL server, and a schema of it for each test."""

from __future__ import annotations

from itertools import count

import psycopg
import pytest

_numbers = count(1)


@pytest.fixture
def dsn(postgres_dsn: str) -> str:
    """The connection string of a schema that is empty."""
    schema = f"connect{next(_numbers)}"
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    return f"{postgres_dsn}?options=-csearch_path%3D{schema}"
