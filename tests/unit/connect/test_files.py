"""Files as a source: what is found, what the rows are, and where reading goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.unit.connect.reading import actions_of, check_resumes, items_of, rows_of, sizes_of

import clew
from clew.connect import lines
from clew.errors import BuildError, OutsideError

ROWS = [{"id": number, "item": f"item {number % 7}", "amount": number / 2} for number in range(250)]


def write_jsonl(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def write_csv(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_parquet(path: Path, rows: list[dict[str, Any]] = ROWS, group: int = 100) -> Path:
    parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=group)
    return path


@pytest.fixture(params=["jsonl", "csv", "parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    where = tmp_path / f"rows.{request.param}"
    if request.param == "jsonl":
        return write_jsonl(where, ROWS)
    return write_csv(where) if request.param == "csv" else write_parquet(where)


@pytest.mark.parametrize("rows_per_event", [1, 7, 100, 250, 1000])
def test_all_rows_come_in_order(path: Path, rows_per_event: int) -> None:
    source = clew.files(path, rows_per_event=rows_per_event)
    assert rows_of(source) == ROWS
    assert max(sizes_of(source)) <= rows_per_event


@pytest.mark.parametrize("rows_per_event", [3, 100])
def test_a_new_process_goes_on_from_any_offset(path: Path, rows_per_event: int) -> None:
    check_resumes(clew.files(path, rows_per_event=rows_per_event))


def test_columns_are_selected_and_typed(path: Path) -> None:
    assert rows_of(clew.files(path, columns=["amount", "id"]))[3] == {"amount": 1.5, "id": 3}
    ((_, items),) = actions_of(clew.files(path, columns={"item": None, "id": "int32"}))
    assert items[0][0].schema == pa.schema([("item", pa.string()), ("id", pa.int32())])
    check_resumes(clew.files(path, columns={"item": None, "id": "int32"}, rows_per_event=100))


def test_an_event_of_a_parquet_file_stays_within_a_row_group(tmp_path: Path) -> None:
    source = clew.files(write_parquet(tmp_path / "a.parquet"), rows_per_event=60)
    ((_, items),) = actions_of(source)
    assert [(batch.num_rows, offset) for batch, offset in items] == [
        (60, [0, 60]), (40, [0, 100]), (60, [1, 60]), (40, [1, 100]), (50, [2, 50]),
    ]  # fmt: skip


def test_a_directory_is_read_in_the_order_of_names_without_what_is_hidden(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", ".c.jsonl", "_d.jsonl", "e.jsonl.tmp"):
        write_jsonl(tmp_path / name, [{"file": name}])
    (tmp_path / "deeper").mkdir()
    for what in (tmp_path, f"{tmp_path}/", f"{tmp_path}/*.jsonl", f"{tmp_path}/**"):
        assert rows_of(clew.files(what)) == [{"file": "a.jsonl"}, {"file": "b.jsonl"}]


def test_the_files_are_those_that_were_there_when_the_run_began(tmp_path: Path) -> None:
    for name in ("b", "d"):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"file": name}])
    source, state = clew.files(tmp_path), {}
    ctx: Any = type("Ctx", (), {"state": state})
    assert source.plan(ctx) == ("file", str(tmp_path / "b.jsonl"))
    for name in ("a", "c", "e"):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"file": name}])
    assert clew.files(tmp_path).plan(ctx) == ("file", str(tmp_path / "d.jsonl"))
    assert clew.files(tmp_path).plan(ctx) is None


def test_fields_may_be_missing_new_and_of_a_wider_type(tmp_path: Path) -> None:
    rows = [{"a": 1}, {"b": None}, {"a": 2.5, "c": {"x": [1]}}, {}, {"c": {"y": "z"}, "d": True}]
    source = clew.files(write_jsonl(tmp_path / "a.jsonl", rows), rows_per_event=1)
    assert rows_of(source)[-1] == {"a": None, "b": None, "c": {"x": None, "y": "z"}, "d": True}
    assert [row.get("a") for row in rows_of(source)] == [1, None, 2.5, None, None]
    check_resumes(source)


def test_types_do_not_depend_on_how_many_lines_make_an_event(tmp_path: Path) -> None:
    rows = [{"at": "2025-01-01T00:00:00", "n": number} for number in range(300)]
    write_jsonl(tmp_path / "a.jsonl", rows)
    for rows_per_event in (1, 150, 300):
        ((_, items),) = actions_of(clew.files(tmp_path / "a.jsonl", rows_per_event=rows_per_event))
        assert items[0][0].schema == pa.schema([("at", pa.string()), ("n", pa.int64())])


def test_blank_lines_a_byte_order_mark_and_a_missing_last_line_end_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n  \n{"a": 2}')
    (tmp_path / "b.csv").write_bytes(b"\xef\xbb\xbfa\r\n1\r\n2")
    assert rows_of(clew.files(tmp_path)) == [{"a": 1}, {"a": 2}, {"a": 1}, {"a": 2}]
    (tmp_path / "c.csv").write_bytes(b"")
    assert rows_of(clew.files(tmp_path / "c.csv")) == []


def test_a_value_in_quotes_may_hold_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a,b\n1,"one\ntwo"\n2,"say ""hi"""\n3,c\n')
    source = clew.files(tmp_path / "a.csv", rows_per_event=1)
    assert [row["b"] for row in rows_of(source)] == ["one\ntwo", 'say "hi"', "c"]
    check_resumes(source)


def test_whole_numbers_of_a_csv_file_become_doubles_when_need_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "RECORDS_MAX", 2)
    (tmp_path / "a.csv").write_text("a,b\n1,x\n2,y\n2.5,7\n4,8\n")
    source = clew.files(tmp_path / "a.csv", rows_per_event=2)
    assert rows_of(source)[2:] == [{"a": 2.5, "b": "7"}, {"a": 4.0, "b": "8"}]
    check_resumes(source)


@pytest.mark.parametrize("count", [5, 250])
def test_a_line_that_is_no_json_is_named_and_what_comes_before_is_given(tmp_path: Path, count: int) -> None:
    lines = [json.dumps({"id": number}) for number in range(count)]
    byte = sum(len(line) + 1 for line in lines[:3])
    lines[3] = '{"id": 3'
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    reading = iter(clew.files(tmp_path / "a.jsonl", rows_per_event=2).read(("file", str(tmp_path / "a.jsonl")), None))
    batch, offset = next(reading)  # type: ignore[misc]
    assert batch.to_pylist() == [{"id": 0}, {"id": 1}]
    wanted = (
        rf"a\.jsonl: line 4 \(byte {byte}\) cannot be read as JSON \(.*expected one JSON object.*Mend the line; nothing"
    )
    with pytest.raises(OutsideError, match=wanted):
        next(reading)
    lines[3] = '{"id": 3}'
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    rest = items_of(clew.files(tmp_path / "a.jsonl", rows_per_event=2), ("file", str(tmp_path / "a.jsonl")), offset)
    assert [row["id"] for batch, _ in rest for row in batch.to_pylist()] == list(range(2, count))


def test_a_line_that_is_no_object_and_a_field_of_two_types_are_named(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"a": 1}, [1]])
    with pytest.raises(OutsideError, match=r"line 2 \(byte 9\) holds a list; expected a JSON object"):
        rows_of(clew.files(path))
    write_jsonl(path, [{"a": 1}, {"a": "x"}])
    with pytest.raises(OutsideError, match=r"line 2 .*field 'a': int64 before, string here.*columns=\{'a': 'string'\}"):
        rows_of(clew.files(path))
    assert rows_of(clew.files(path, columns={"a": "string"})) == [{"a": "1"}, {"a": "x"}]
    with pytest.raises(OutsideError, match=r"line 2 .*holds 'x' in the field 'a' .*expected a double"):
        rows_of(clew.files(path, columns={"a": "double"}))
    write_jsonl(path, [{"a": 2**70}])
    with pytest.raises(OutsideError, match=r"more than 64 bits"):
        rows_of(clew.files(path))


def test_two_objects_on_a_line_are_refused_by_the_fast_way_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n' * 5000 + '{"a": 1}{"a": 2}\n')
    with pytest.raises(OutsideError, match=r"line 5001 .*Extra data"):
        rows_of(clew.files(tmp_path / "a.jsonl"))


def test_a_bad_row_of_a_csv_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,x\n2,y\n3\n")
    with pytest.raises(OutsideError, match=r"a\.csv: line 4 \(byte 12\).*Expected 2 columns, got 1.*\(a, b\).*Mend"):
        rows_of(clew.files(path, rows_per_event=5))
    reading = iter(clew.files(path, rows_per_event=1).read(("file", str(path)), None))
    assert [next(reading)[0].to_pylist()[0]["a"] for _ in range(2)] == [1, 2]  # type: ignore[index]
    with pytest.raises(OutsideError, match=r"line 4 "):
        next(reading)
    monkeypatch.setattr(lines, "RECORDS_MAX", 2)
    path.write_text("a,b\n1,x\n2,y\n3,z\nfour,z\n")
    with pytest.raises(
        OutsideError, match=r"line 5 .*column 'a': int64 before, string here.*columns=\{'a': 'string'\}"
    ):
        rows_of(clew.files(path, rows_per_event=2))
    path.write_text('a,b\n1,"x\n')
    with pytest.raises(OutsideError, match=r"ends inside the quoted value that begins in line 2 \(byte 4\)"):
        rows_of(clew.files(path))
    path.write_text("a,a\n1,2\n")
    with pytest.raises(OutsideError, match=r"header names the columns a, a; expected each name once"):
        rows_of(clew.files(path))


def test_missing_columns_files_and_formats_are_named(path: Path, tmp_path: Path) -> None:
    if path.suffix != ".jsonl":  # A field of JSON lines may come later.
        with pytest.raises(OutsideError, match=r"has no column 'prize'.*id, item, amount"):
            rows_of(clew.files(path, columns=["prize"]))
    with pytest.raises(OutsideError, match=r"no file matches .*\.none; expected at least one.*follow=True"):
        rows_of(clew.files(tmp_path / "*.none"))
    odd = path.rename(tmp_path / "rows.odd")
    with pytest.raises(OutsideError, match=r"rows\.odd: the format cannot be told.*\.parquet.*Pass format="):
        rows_of(clew.files(odd))
    assert rows_of(clew.files(odd, format=path.suffix[1:])) == ROWS


def test_what_was_read_must_not_become_shorter_or_go(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    source = clew.files(path, rows_per_event=250)
    ((action, ((_, offset),)),) = actions_of(source)
    path.write_text("")
    with pytest.raises(
        OutsideError, match=r"has 0 bytes, but .* have been read already; expected a file that only grows"
    ):
        items_of(source, action, offset)
    path.unlink()
    with pytest.raises(OutsideError, match=r"a\.jsonl is not there any more.*Bring it back"):
        items_of(source, action, offset)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(OutsideError, match=r"cannot be read as Parquet.*rename them into place"):
        rows_of(clew.files(tmp_path / "b.parquet"))


def test_settings_are_checked_when_the_pipeline_is_built(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"rows_per_event=0; expected a whole number from 1 up"):
        clew.files(tmp_path, rows_per_event=0)
    with pytest.raises(BuildError, match=r"poll_s=0; expected a number above 0"):
        clew.files(tmp_path, poll_s=0)
    with pytest.raises(BuildError, match=r"format='xls'; expected parquet, csv, jsonl"):
        clew.files(tmp_path, format="xls")
    with pytest.raises(BuildError, match=r"idle_s=1 without follow=True"):
        clew.files(tmp_path, idle_s=1)
    with pytest.raises(BuildError, match=r"column 'a' was given the type 'number'; expected an Arrow type"):
        clew.files(tmp_path, columns={"a": "number"})
    with pytest.raises(BuildError, match=r"columns=.*expected a list of column names"):
        clew.files(tmp_path, columns=[])
