"""What real Timely did, recorded once: Clew's kernels agree with it, and changed records are noticed."""

import copy
import doctest
import json
from pathlib import Path

import pytest
from tools.timely import compare, judge, vectors

from clew.cli.main import main

RECORDS = [json.loads(line) for line in (compare.HERE / "recorded.jsonl").read_text().splitlines()]
PROGRAMS = [record for record in RECORDS if record["mode"] == "program"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "recorded.json"
    compare.write(path, [vectors.case(record) for record in RECORDS])
    return path


def test_the_recording_has_programs_and_graphs_and_several_kinds_of_time():
    assert {record["mode"] for record in RECORDS} == {"program", "tracker"}
    assert len({json.dumps(record["graph"]["domain"]) for record in RECORDS}) >= 5
    assert {record["worker"] for record in PROGRAMS} == {0, 1}


def test_clew_agrees_with_the_recording(file, capsys):
    assert main(["check", str(file)]) == 0
    assert f"{len(RECORDS)} of {len(RECORDS)} cases agree" in capsys.readouterr().out


@pytest.mark.parametrize("record", RECORDS, ids=vectors.title)
def test_the_recording_is_right_by_definition(record):
    assert list(judge.faults(record)) == []


def test_a_changed_frontier_is_noticed(file):
    compare.write(file, compare.broken([vectors.case(record) for record in RECORDS]))
    found = compare.deviation(file)
    assert found is not None
    assert "propagation[0]" in found
    assert vectors.title(RECORDS[0]) in found
    assert "Timely has" in found


def test_a_lost_change_is_noticed(file):
    """A log that misses one change leads to other frontiers or counts, or to a change that is refused."""
    broken = copy.deepcopy(PROGRAMS[0])
    number = next(n for n, round_ in enumerate(broken["rounds"]) if n and round_["changes"])
    broken["rounds"][number]["changes"].pop()
    compare.write(file, [vectors.case(broken)])
    assert compare.deviation(file) is not None


def test_the_judge_notices_a_wrong_frontier_of_timely():
    broken = copy.deepcopy(RECORDS[0])
    place = next(place for place, frontier in broken["rounds"][0]["frontiers"].items() if frontier)
    broken["rounds"][0]["frontiers"][place] = []
    assert any("by definition" in fault for fault in judge.faults(broken))


def test_the_judge_notices_an_operator_that_saw_something_else():
    broken = copy.deepcopy(next(record for record in PROGRAMS if record["observed"]))
    broken["observed"][0][2] = [99]
    assert any("the running operator saw [99]" in fault for fault in judge.faults(broken))


def test_the_judge_notices_a_change_that_comes_too_late():
    assert any("had passed" in fault for fault in judge.faults({**PROGRAMS[0], "unannounced": 2}))


@pytest.mark.parametrize("module", [judge, vectors])
def test_examples(module):
    assert doctest.testmod(module).failed == 0
