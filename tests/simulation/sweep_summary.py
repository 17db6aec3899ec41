"""How many crash points the sweeps went through, as a table at the end of a test run.

A conftest calls `show_sweeps` in its `pytest_terminal_summary`; the numbers travel from the test processes as user
properties of the test reports.
"""

from __future__ import annotations

from typing import Any

PROPERTY = "sweep"


def show_sweeps(terminal: Any) -> None:
    """One table with a line for each pipeline and a column for each number that was noted."""
    table: dict[str, dict[str, float]] = {}
    for reports in terminal.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == PROPERTY:
                    table.setdefault(value[0], {}).update(value[1])
    if table:
        terminal.section("simulated crashes")
        for line in lines(table):
            terminal.write_line(line)


def lines(table: dict[str, dict[str, float]]) -> list[str]:
    """The table as text, with sums below."""
    columns = list(dict.fromkeys(column for numbers in table.values() for column in numbers))
    sums = {column: sum(numbers.get(column, 0) for numbers in table.values()) for column in columns}
    rows = [("pipeline", *columns)]
    for name, numbers in [*sorted(table.items()), ("all", sums)]:
        rows.append((name, *(_shown(numbers.get(column)) for column in columns)))
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(each, widths, strict=True))
        )
        for each in rows
    ]


def _shown(number: float | None) -> str:
    if number is None:
        return ""
    return f"{number:.1f}" if isinstance(number, float) else f"{number}"
