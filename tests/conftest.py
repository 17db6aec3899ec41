"""What all tests share: a private PostgreSQL server, and what is printed at the end, simulated crashes and canaries.

The latter is not in the conftest of the simulation, because the main process of pytest-xdist collects no tests and so
never comes to see that one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.postgres_server import NoPostgres, find_programs, postgres_server
from tests.simulation.canary_summary import show_canaries
from tests.simulation.sweep_summary import show_sweeps


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


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints them."""
    show_sweeps(terminalreporter)
    show_canaries(terminalreporter)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Doctests are looked for in the package; here only test modules are collected, each once."""
    name = collection_path.name
    return True if name.endswith(".py") and not name.startswith(("test_", "conftest")) else None
