"""The public surface: what `import clew` offers is short, sorted, and listed here."""

from __future__ import annotations

import tomllib
from pathlib import Path

import clew

PUBLIC = [
    "Assigned",
    "BuildError",
    "ClewError",
    "Context",
    "Event",
    "Kind",
    "LogError",
    "MoveError",
    "Operator",
    "Pipeline",
    "ReadConnection",
    "Source",
    "Stamped",
    "Stamps",
    "Stream",
    "Violation",
    "WriteAction",
    "WriteConnection",
    "__version__",
    "call",
    "csv",
    "dataframe",
    "event_time",
    "files",
    "frame_writer",
    "from_callable",
    "generator",
    "jsonl",
    "numbered",
    "parquet",
    "postgres",
    "postgres_lookup",
    "postgres_query",
    "rate",
    "read_stream",
    "session",
    "sliding",
    "sqlite",
    "tumbling",
]


def test_the_public_names_are_these() -> None:
    assert clew.__all__ == PUBLIC


def test_they_are_sorted() -> None:
    assert sorted(clew.__all__) == clew.__all__


def test_each_exists_and_says_what_it_is() -> None:
    for name in clew.__all__:
        assert getattr(clew, name).__doc__, name


def test_the_version_is_the_one_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert clew.__version__ == project["project"]["version"]


def test_testing_has_a_surface_of_its_own() -> None:
    import clew.testing

    assert clew.testing.__all__ == [
        "Alone",
        "Crash",
        "Outside",
        "Result",
        "Specification",
        "check_time_properties",
        "monotone_streams",
        "random_streams",
        "run",
        "scripted",
        "verify",
    ]
