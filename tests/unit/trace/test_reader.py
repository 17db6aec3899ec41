"""Reading traces: torn ends, damage, absence, and the order in which a running pipeline is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.trace.test_packing import ME, NAMES
from tests.unit.trace.test_writer import commit, life

from clew.model.history import Recovered
from clew.model.names import Channel, Replica
from clew.trace.framing import TraceDamaged
from clew.trace.reader import TraceNotFound, _receivers_first, read_trace, trace_folder
from clew.trace.records import SNAPSHOT, Head, Names
from clew.trace.writer import Tracer, segments_of


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tracer = Tracer(tmp_path / "trace", NAMES)
    tracer.start(Recovered(1))
    for number in range(1, 4):
        tracer.steps(number, commit(number))
    tracer.close(True)
    return segments_of(tracer.folder)[0]


def test_a_trace_is_found_by_its_log_or_by_itself(file: Path, tmp_path: Path) -> None:
    assert trace_folder(tmp_path) == trace_folder(tmp_path / "trace") == tmp_path / "trace"


def test_where_none_is(tmp_path: Path) -> None:
    with pytest.raises(TraceNotFound, match=r"holds no trace; expected the directory of a log.*--no-trace"):
        read_trace(tmp_path / "nothing")


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_torn_end_is_left_out(file: Path, cut: int, tmp_path: Path) -> None:
    whole = len(life(tmp_path / "trace").told)
    file.write_bytes(file.read_bytes()[:-cut])
    assert whole - 2 <= len(life(tmp_path / "trace").told) < whole


def test_a_last_record_that_is_garbled_is_left_out(file: Path, tmp_path: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert len(life(tmp_path / "trace").told) == 3


def test_an_end_that_the_machine_has_not_written_is_left_out(file: Path, tmp_path: Path) -> None:
    file.write_bytes(file.read_bytes() + bytes(500))
    assert len(life(tmp_path / "trace").told) == 4


@pytest.mark.parametrize("place", range(-140, -60, 5))
def test_damage_in_the_middle_is_said(file: Path, place: int, tmp_path: Path) -> None:
    """Wherever it is: in a length, in a checksum, in a record."""
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)
    with pytest.raises(TraceDamaged, match=r"000001.trace: the record at byte \d+ has another checksum .* restore"):
        read_trace(tmp_path)


def test_another_file_is_refused(file: Path, tmp_path: Path) -> None:
    (file.parent / "000002.trace").write_bytes(b"something else")
    with pytest.raises(TraceDamaged, match=r"000002.trace is no file of a trace; expected it to begin with"):
        read_trace(tmp_path)


def test_an_empty_file_of_a_process_that_died_at_once_is_nothing(file: Path, tmp_path: Path) -> None:
    (file.parent / "000002.trace").write_bytes(b"cle")
    assert len(read_trace(tmp_path).lives[ME]) == 1


def test_only_empty_files(tmp_path: Path) -> None:
    (tmp_path / "sums-0").mkdir()
    (tmp_path / "sums-0" / "000001.trace").write_bytes(b"")
    with pytest.raises(TraceNotFound, match="nothing has run yet"):
        read_trace(tmp_path)


def test_a_trace_has_one_mode(file: Path, tmp_path: Path) -> None:
    tracer = Tracer(tmp_path / "trace", NAMES, SNAPSHOT)
    tracer.start(Recovered(2))
    with pytest.raises(TraceDamaged, match="holds records of the modes log and snapshot; expected one"):
        read_trace(tmp_path)


def test_receivers_are_read_before_their_senders() -> None:
    def head(name: str, *senders: str) -> Head:
        me = Replica(name)
        names = Names(me, tuple(Channel(Replica(each), "out", me, each) for each in senders), ("out",), ())
        return Head(names, "log", 1, 0, 0, 0, (), (), (0,), (0,), (), 0, False, 1, 0.0, True)

    heads = [head("a"), head("c", "b", "a"), head("b", "a", "again"), head("again", "b")]
    order = [path.name for path in _receivers_first({Path(each.names.replica.operator): each for each in heads})]
    assert set(order) == {"a", "b", "c", "again"}
    assert order.index("c") < order.index("b") < order.index("a")
