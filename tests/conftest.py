"""What is printed after all tests: the simulated crashes, and the canaries.

This is not in the conftest of the simulation, because the main process of pytest-xdist collects no tests and so never
comes to see that one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.simulation.canary_summary import show_canaries
from tests.simulation.sweep_summary import show_sweeps


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints them."""
    show_sweeps(terminalreporter)
    show_canaries(terminalreporter)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Doctests are looked for in the package; here only test modules are collected, each once."""
    name = collection_path.name
    return True if name.endswith(".py") and not name.startswith(("test_", "conftest")) else None
