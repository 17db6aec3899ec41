"""The canaries at the end of a test run: each with the schedule that killed it, and what the checker said.

A conftest calls `show_canaries` in its `pytest_terminal_summary`; the lines travel from the test processes as user
properties of the test reports.
"""

from __future__ import annotations

from typing import Any

PROPERTY = "canary"


def show_canaries(terminal: Any) -> None:
    """Prints one line for each canary that was caught in this run."""
    lines = [
        str(line)
        for report in terminal.stats.get("passed", [])
        for name, line in getattr(report, "user_properties", ())
        if name == PROPERTY
    ]
    if lines:
        terminal.section(f"{len(lines)} canaries, each with the schedule that caught it")
        for line in sorted(lines):
            terminal.write_line(line)
