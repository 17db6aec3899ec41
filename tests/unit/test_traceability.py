"""The traceability page says what is there: every path of a row that is `here` exists, no numbered item is missing."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "traceability.md"
FOLDERS = {"code": ROOT / "src" / "clew", "test": ROOT / "tests"}


class Row(NamedTuple):
    text: str
    """Which of the four texts: the heading that the row stands under."""
    line: int
    item: str
    where: str
    code: str
    test: str
    state: str


def rows_of(page: str) -> list[Row]:
    """The rows of all tables that have the page's five columns."""
    rows, text, in_table = [], "", False
    for number, line in enumerate(page.splitlines(), start=1):
        if line.startswith("## "):
            text = line[3:].strip()
        if not line.startswith("|"):
            in_table = False
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells == ["item", "where", "code", "test", "state"]:
            in_table = True
        elif in_table and not all(set(cell) == {"-"} for cell in cells):
            assert len(cells) == 5, f"line {number} of {PAGE.name} has {len(cells)} cells, not 5: {line}"
            rows.append(Row(text, number, *cells))
    return rows


def missing(row: Row) -> list[str]:
    """What a row that is `here` names and is not there. A path may go on with `::` and a name defined in the file.

    Code that begins with `tools/` is beside the package, not in it.
    """
    found = []
    for column, folder in FOLDERS.items():
        paths = re.findall(r"`([^`]+)`", getattr(row, column))
        if not paths:
            found.append(f"line {row.line}: {row.item}: no {column} named")
        for path in paths:
            file, _, name = path.partition("::")
            is_tool = column == "code" and file.startswith("tools/")
            at, where = (ROOT, "the checkout") if is_tool else (folder, str(folder.relative_to(ROOT)))
            if not (at / file).is_file():
                found.append(f"line {row.line}: {row.item}: no file {file} in {where}")
            elif name and name not in defined((at / file).read_text(encoding="utf-8")):
                found.append(f"line {row.line}: {row.item}: {file} defines no {name}")
    return found


def defined(source: str) -> set[str]:
    """Names of all functions and classes, methods as `Class.method` too."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return names


ROWS = rows_of(PAGE.read_text(encoding="utf-8"))


def test_states_are_here_or_not_yet_with_a_topic() -> None:
    wrong = [f"line {row.line}: {row.state}" for row in ROWS if not re.fullmatch(r"here|not yet \([^()]+\)", row.state)]
    assert not wrong, "\n".join(wrong)


def test_what_is_here_exists() -> None:
    found = [each for row in ROWS if row.state == "here" for each in missing(row)]
    assert not found, "\n".join(found)


def test_what_is_not_yet_names_no_code() -> None:
    wrong = [
        f"line {row.line}: {row.item}" for row in ROWS if row.state != "here" and (row.code, row.test) != ("—", "—")
    ]
    assert not wrong, "\n".join(wrong)


NUMBERED = {
    "LOG.io": [
        *(f"Algorithm {n}" for n in range(1, 14)),
        *(f"Example {n}" for n in range(1, 12)),
        *(f"Table {n}" for n in range(1, 7)),
        *(f"Figure {n}" for n in range(1, 14)),
        *("Proposition 1", "Proposition 2", "Property P1", "Property P2"),
        *("`GetActionID`", "`GetStateID`", "`BeginTransaction`", "`InitializeReadAction`", "`CompleteReadAction`"),
        *("`DropReadAction`", "`LogStateEvent`", "`UpdateContext`", "`GetWriteActions`", "`CheckEvent`"),
        *("`AssignInSets`", "`Commit`", "`LogSourceEvent`", "`LogOutputEvents`", "`DoneEvent`", "`StoreState`"),
        *("`FetchAckEvents`", "`FetchResendEvents`", "`GetProcState`"),
        *("Listing 1", "Listing 2", "Listing 3"),
    ],
    "ABS": [
        *(f"Rule {name}" for name in ("S-STEP", "S-ABSX", "S-ABSP", "I-EVENT", "I-BORDER", "F-FAIL", "F-RECOVER")),
        *(f"Definition 4.{n}" for n in range(1, 6)),
        *(f"Definition 5.{n}" for n in (1, 2, 3, 4, 5, 6, 10)),
        *(f"Lemma 5.{n}" for n in (7, 8, 9)),
        *(f"Definition 6.{n}" for n in (1, 2, 3, 5, 6, 7, 9, 10, 11)),
        *("Lemma 6.4", "Lemma 6.8", "Theorem 6.12"),
        *(f"Lemma 7.{n}" for n in range(1, 5)),
    ],
    "Time": [f"({n})" for n in (5, 6, 7, *range(10, 25), *range(26, 32))],
    "Progress": [
        *(f"Definition 4.{n}" for n in range(1, 4)),
        *("Definition 5.2", "Proposition 5.3", "Definition 5.4", "Definition 5.5", "Proposition 5.6", "Theorem 5.7"),
        *("Proposition 7.1", "Definition 7.2", "Proposition 7.3", "Proposition 7.4", "Lemma 7.5", "Theorem 7.6"),
    ],
}


@pytest.mark.parametrize("text", NUMBERED)
def test_no_numbered_item_is_missing(text: str) -> None:
    items = "\n".join(row.item for row in ROWS if row.text == text)
    absent = [item for item in NUMBERED[text] if not re.search(rf"(?<!\w){re.escape(item)}(?!\d)", items)]
    assert not absent, f"{text}: {', '.join(absent)}"


HEAD = "## LOG.io\n\n| item | where | code | test | state |\n| --- | --- | --- | --- | --- |\n"


def test_the_check_sees_what_is_missing() -> None:
    (row,) = rows_of(HEAD + "| Algorithm 1 | 3.3 | `model/nowhere.py` | — | here |\n")
    assert missing(row) == [
        "line 5: Algorithm 1: no file model/nowhere.py in src/clew",
        "line 5: Algorithm 1: no test named",
    ]


def test_the_check_sees_a_name_that_is_not_defined() -> None:
    line = "| Event | 2.1 | `model/event.py::Event.same` | `unit/test_traceability.py::test_nothing` | here |\n"
    (row,) = rows_of(HEAD + line)
    assert missing(row) == ["line 5: Event: unit/test_traceability.py defines no test_nothing"]


def test_the_check_sees_tools_that_are_missing() -> None:
    (row,) = rows_of(HEAD + "| Comparison | 8.1 | `tools/nowhere.py` | `unit/test_traceability.py` | here |\n")
    assert missing(row) == ["line 5: Comparison: no file tools/nowhere.py in the checkout"]
