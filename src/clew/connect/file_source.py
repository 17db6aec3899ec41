"""Files as a source: which files there are, a read action for each, and how what grows is followed."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from clew.connect.comma_separated import CommaSeparated
from clew.connect.json_lines import JsonLines
from clew.connect.learned import Columns
from clew.connect.parquet_file import read_parquet
from clew.connect.settings import counted, idle_looks, positive
from clew.connect.text_file import Parser, read_text
from clew.errors import BuildError, OutsideError
from clew.model.operator import Context
from clew.model.source import Source

SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
FORMATS = ("parquet", "csv", "jsonl")

_PAGE = 1000
"""How many names a key of the state holds."""


def files(
    pattern: str | os.PathLike[str],
    *,
    rows_per_event: int = 500,
    format: str | None = None,
    columns: Any = None,
    follow: bool = False,
    poll_s: float = 0.05,
    idle_s: float | None = None,
) -> Source:
    """The rows of files: of a directory, of all files that match a pattern, or of one file; replayable.

    The format (`parquet`, `csv` or `jsonl`) is found by the suffix unless given. `columns` selects columns: a list of
    names, or a dictionary from names to Arrow types. Names that begin with "." or "_" or end in ".tmp" are left out.

    Without `follow` the files that are there when the run begins are read in the order of their names. With it, new
    files of a directory or pattern are read as they appear (rename them into place when they are whole; each name
    is read once), and a single text file is read on as lines are appended to it; both are looked at every `poll_s`
    seconds, until for `idle_s` seconds (counted in looks) nothing is new, or for ever.
    """
    return Files(pattern, rows_per_event, format, Columns(columns), follow, poll_s, idle_s)


class Files(Source):
    """See `files`."""

    def __init__(
        self,
        pattern: str | os.PathLike[str],
        rows_per_event: int,
        format: str | None,
        columns: Columns,
        follow: bool,
        poll_s: float,
        idle_s: float | None,
    ) -> None:
        self.pattern = os.path.abspath(pattern)  # Other processes may run in other directories.
        self.rows_per_event = counted("files()", "rows_per_event", rows_per_event)
        self.poll_s = positive("files()", "poll_s", poll_s)
        self.columns = columns
        self.follow = follow
        self.format = format
        self.idle_max = idle_looks("files()", idle_s, self.poll_s, follow=follow)
        if format is not None and format not in FORMATS:
            raise BuildError(f"files() was given format={format!r}; expected {', '.join(FORMATS)}. Pass one of these.")
        is_pattern = glob.has_magic(self.pattern)
        has_suffix = bool(PurePath(self.pattern).suffix) and not str(pattern).endswith(os.sep)
        self.is_directory = (
            not is_pattern and not os.path.isfile(self.pattern) and (os.path.isdir(self.pattern) or not has_suffix)
        )
        self.is_tail = follow and not is_pattern and not self.is_directory and self._format(self.pattern) != "parquet"
        self._seen: set[str] = set()
        self._new: list[str] = []

    def __repr__(self) -> str:
        return f"<files {self.pattern}{' followed' if self.follow else ''}>"

    def open(self, ctx: Context) -> None:
        """Finds out which files of a followed directory were begun already."""
        self._seen = {key[1] for key in ctx.state if isinstance(key, tuple)} if self.follow else set()
        self._new = []

    def plan(self, ctx: Context) -> tuple[str, str | int] | None:
        """The next file; while there is none in a followed directory, waiting is an action of its own."""
        if self.is_tail:
            return ("tail", self.pattern) if super().plan(ctx) else None
        if not self.follow:
            return self._plan_listed(ctx)
        if self._look():
            name = self._new.pop(0)
            self._seen.add(name)
            ctx.state["begun", name] = True
            ctx.state["waited"] = False
            return "file", name
        if ctx.state.get("waited") and self.idle_max is not None:
            return None  # It ended, and still there is nothing new.
        ctx.state["waited"] = True
        return "wait", 0

    def _plan_listed(self, ctx: Context) -> tuple[str, str] | None:
        count = ctx.state.get("count")
        if count is None:
            names = self._listed()
            if not names:
                raise OutsideError(
                    f"no file matches {self.pattern}; expected at least one. Look at the pattern, or pass follow=True "
                    f"to wait for files."
                )
            count = ctx.state["count"] = len(names)
            for page in range(0, count, _PAGE):
                ctx.state["names", page // _PAGE] = names[page : page + _PAGE]
        planned: int = ctx.state.get("planned", 0)
        if planned == count:
            return None
        ctx.state["planned"] = planned + 1
        return "file", ctx.state["names", planned // _PAGE][planned % _PAGE]

    def read(self, action: tuple[str, Any], offset: Any) -> Iterator[Any]:
        """The rows of one file from an offset on, or nothing until a new file is there."""
        match action:
            case "wait", _:
                return self._wait()
            case kind, path:
                return self._read(path, offset, is_growing=kind == "tail")

    def _wait(self) -> Iterator[None]:
        idle = 0
        while not self._look() and idle != self.idle_max:
            idle += 1
            yield None

    def _read(self, path: str, offset: Any, *, is_growing: bool) -> Iterator[Any]:
        format = self._format(path)
        if format == "parquet":
            return read_parquet(path, self.columns, offset, self.rows_per_event)
        parser: Parser = JsonLines(path, self.columns) if format == "jsonl" else CommaSeparated(path, self.columns)
        return read_text(parser, offset, self.rows_per_event, is_growing=is_growing, idle_max=self.idle_max)

    def _look(self) -> bool:
        """Whether there are files that no action has begun."""
        if not self._new:
            self._new = [name for name in self._listed() if name not in self._seen]
        return bool(self._new)

    def _listed(self) -> list[str]:
        if self.is_directory:
            try:
                names = [entry.path for entry in os.scandir(self.pattern) if entry.is_file()]
            except FileNotFoundError:
                names = []
        else:
            names = [name for name in glob.glob(self.pattern, recursive=True) if os.path.isfile(name)]
        return sorted(name for name in names if not _is_hidden(os.path.basename(name)))

    def _format(self, path: str) -> str:
        found = self.format or SUFFIXES.get(PurePath(path).suffix.lower())
        if found is None:
            raise OutsideError(
                f"{path}: the format cannot be told from the name; expected a name that ends in {', '.join(SUFFIXES)}. "
                f"Pass format=, or a pattern such as '*.jsonl' that leaves this file out."
            )
        return found


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) or name.endswith(".tmp")
