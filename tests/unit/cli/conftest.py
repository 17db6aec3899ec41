"""What the tests of the commands share: a user's file, and a command that is run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.cli.main import main


class Result:
    """How a command ended and what it said."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err
        self.lines = out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.lines[-1])


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    """Writes a user's file and gives its path."""

    def write(text: str, name: str = "mine.py") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Runs `clew` with arguments."""

    def call(*arguments: Any) -> Result:
        code = main([str(argument) for argument in arguments])
        return Result(code, *capsys.readouterr())

    return call
