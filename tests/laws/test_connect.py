"""Laws of the sources that read files: from any offset comes exactly the rest, however the events are cut."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from tests.unit.connect.reading import actions_of, check_resumes, items_of, rows_of

import clew
from clew.connect import json_lines, lines, parquet_file
from clew.connect.learned import Conflict, merged, plain_of

texts = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), max_size=8)
values: dict[str, st.SearchStrategy[Any]] = {
    "n": st.none() | st.integers(-(2**63), 2**63 - 1),
    "f": st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-100, 100),
    "t": st.none() | texts,
    "b": st.booleans(),
    "l": st.lists(st.none() | st.integers(0, 9), max_size=3),
    "s": st.fixed_dictionaries({}, optional={"x": texts, "y": st.none() | st.booleans()}),
}
rows = st.lists(st.fixed_dictionaries({}, optional=values), max_size=30)
law = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks end often, and the fast way is taken for short ones."""
    monkeypatch.setattr(lines, "RECORDS_MAX", 7)
    monkeypatch.setattr(parquet_file, "_DECODED", 7)
    monkeypatch.setattr(json_lines, "FAST_FROM", 3)


def plain(found: Any) -> Any:
    """A value without the fields that are null, as whether they are there depends on the file."""
    if isinstance(found, dict):
        return {name: plain(each) for name, each in found.items() if plain(each) not in (None, {})}
    return found


@law
@given(rows, st.integers(1, 12))
def test_lines_of_json(tmp_path: Path, given_rows: list[dict[str, Any]], rows_per_event: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in given_rows))
    source = clew.files(path, rows_per_event=rows_per_event)
    assert [plain(row) for row in rows_of(source)] == [plain(row) for row in given_rows]
    check_resumes(source)


@law
@given(st.lists(st.tuples(st.integers(-99, 99), texts, texts), max_size=30), st.integers(1, 12))
def test_comma_separated(tmp_path: Path, given_rows: list[Any], rows_per_event: int) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerows([("n", "t", "u"), *given_rows])
    source = clew.files(path, rows_per_event=rows_per_event, columns={"n": "int64", "t": "string", "u": "string"})
    assert [tuple(row.values()) for row in rows_of(source)] == given_rows
    check_resumes(source)


@law
@given(rows.filter(bool), st.integers(1, 12), st.integers(1, 9))
def test_parquet(tmp_path: Path, given_rows: list[dict[str, Any]], rows_per_event: int, group: int) -> None:
    numbered = [{"n": number, "t": row.get("t")} for number, row in enumerate(given_rows)]
    parquet.write_table(pa.Table.from_pylist(numbered), tmp_path / "a.parquet", row_group_size=group)
    source = clew.files(tmp_path / "a.parquet", rows_per_event=rows_per_event)
    assert rows_of(source) == numbered
    check_resumes(source)


@law
@given(st.lists(st.integers(0, 999), max_size=20), st.data(), st.integers(1, 5), st.sampled_from(["jsonl", "csv"]))
def test_a_growing_file_gives_each_line_once(
    tmp_path: Path, numbers: list[int], data: st.DataObject, rows_per_event: int, format: str
) -> None:
    """However the bytes arrive, and wherever a process dies and another goes on."""
    path = tmp_path / f"a.{format}"
    as_line: Callable[[int], str] = (lambda n: f'{{"n": {n}}}\n') if format == "jsonl" else (lambda n: f'{n},"a\nb"\n')
    whole = ("" if format == "jsonl" else "n,t\n") + "".join(map(as_line, numbers))
    path.write_text("")
    source = clew.files(path, rows_per_event=rows_per_event, follow=True)
    offset, found, written = None, [], 0
    reading = iter(source.read(("tail", str(path)), None))
    while True:
        item = next(reading)
        if item is not None:
            batch, offset = item
            found += batch.column("n").to_pylist()
        elif written == len(whole):
            break
        else:
            more = data.draw(st.integers(1, len(whole) - written))
            with path.open("a") as file:
                file.write(whole[written : written + more])
            written += more
        if data.draw(st.integers(0, 4)) == 0:
            reading = iter(
                clew.files(path, rows_per_event=rows_per_event, follow=True).read(("tail", str(path)), offset)
            )
    assert found == numbers


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)


@given(json_values, json_values, json_values)
def test_merging_types_is_associative_and_idempotent_where_it_is_possible(one: Any, two: Any, three: Any) -> None:
    try:
        a, b, c = plain_of(one), plain_of(two), plain_of(three)
        left = merged(merged(a, b), c)
    except Conflict:
        return
    assert merged(a, merged(b, c)) == left
    assert merged(left, a) == left == merged(left, c)
    assert merged(a, a) == a


@law
@given(rows, st.integers(0, 29), st.integers(1, 5))
def test_a_mended_file_gives_everything_once(
    tmp_path: Path, given_rows: list[dict[str, Any]], bad: int, rows_per_event: int
) -> None:
    """A line that cannot be read stops the source behind the last whole event; once mended, the rest follows."""
    path = tmp_path / "a.jsonl"
    texts = [json.dumps(row) + "\n" for row in given_rows]
    broken = [*texts[:bad], "{broken\n", *texts[bad + 1 :]]
    path.write_text("".join(broken))
    source = clew.files(path, rows_per_event=rows_per_event)
    items: list[Any] = []
    with pytest.raises(clew.ClewError, match=f"line {min(bad, len(given_rows)) + 1} "):
        items.extend(source.read(("file", str(path)), None))
    found = [row for batch, _ in items for row in batch.to_pylist()]
    offset = items[-1][1] if items else None
    path.write_text("".join(texts))
    found += [row for batch, _ in items_of(source, ("file", str(path)), offset) for row in batch.to_pylist()]
    assert [plain(row) for row in found] == [plain(row) for row in given_rows]
    assert len(actions_of(source)) == 1
