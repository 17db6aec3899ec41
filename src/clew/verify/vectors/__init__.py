"""Vector files: cases recorded elsewhere, replayed with Clew's own kernels and compared step by step."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

from clew.verify.vectors.report import BadVectors, Difference, Report

# The module that replays a format has a function `check(document) -> Report`.
FORMATS = {
    "abs/1": "clew.verify.vectors.abs",
    "progress/1": "clew.verify.vectors.progress",
    "timeaware/1": "clew.verify.vectors.timeaware",
}

__all__ = ["FORMATS", "BadVectors", "Difference", "Report", "check_file"]


def check_file(path: str) -> Report:
    """Replays a file; raises `BadVectors` if it cannot be read."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadVectors(f"{path}: cannot be opened: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadVectors(f"{path}: is not text in UTF-8: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise BadVectors(f"{path}: is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise BadVectors(f"{path}: is nested too deeply to be read") from error
    known = ", ".join(FORMATS)
    if not isinstance(document, dict) or not isinstance(document.get("format"), str):
        raise BadVectors(f'{path}: expected an object with a "format", one of {known}')
    name = document["format"]
    if name not in FORMATS:
        raise BadVectors(
            f"{path}: the format is {name!r}: this is not a format that Clew knows. Known formats: {known}."
        )
    try:
        report: Report = import_module(FORMATS[name]).check(document)
    except BadVectors as error:
        raise BadVectors(f"{path}: {error}") from error
    return report
