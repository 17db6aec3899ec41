"""The coordinator's kernel: when epochs end, when they are complete, and where all go on after a loss."""

from __future__ import annotations

from clew.model.names import Replica
from clew.protocol.epochs import (
    Effect,
    EpochKernel,
    Joined,
    Lost,
    Mark,
    Open,
    Opened,
    Record,
    Recorded,
    Rewind,
    Stored,
    Tell,
    Ticked,
)

A, B, C = Replica("a"), Replica("b"), Replica("c")


def feed(kernel: EpochKernel, *inputs: object) -> list[Effect]:
    found: list[Effect] = []
    for given in inputs:
        found += kernel.step(given)  # type: ignore[arg-type]
        kernel.check()
    return found


def running(epoch: int = 0, generation: int = 1) -> EpochKernel:
    kernel = EpochKernel((A, B, C), 5.0, epoch)
    assert feed(kernel, Lost()) == [Open()]
    assert feed(kernel, Opened(generation)) == [Rewind(generation, epoch)]
    assert feed(kernel, *(Joined(each, generation, False) for each in (A, B, C))) == []
    return kernel


def stored(epoch: int, *replicas: Replica, generation: int = 1, is_final: bool = False) -> list[Stored]:
    return [Stored(each, generation, epoch, is_final) for each in replicas]


def test_epochs_end_at_intervals_one_at_a_time() -> None:
    kernel = running()
    assert feed(kernel, Ticked(4.9)) == []
    assert feed(kernel, Ticked(5.0)) == [Mark(1)]
    assert feed(kernel, Ticked(50.0)) == []
    assert feed(kernel, *stored(1, A, B)) == []
    assert feed(kernel, *stored(1, C)) == [Record(1)]
    assert feed(kernel, Recorded(1)) == [Tell(1)]
    assert kernel.next_at == 55.0
    assert feed(kernel, Ticked(55.0)) == [Mark(2)]


def test_nothing_begins_before_everyone_is_there() -> None:
    kernel = EpochKernel((A, B), 5.0)
    feed(kernel, Lost(), Opened(1), Joined(A, 1, False))
    assert feed(kernel, Ticked(100.0)) == []
    assert kernel.next_at is None


def test_an_epoch_is_complete_with_the_slowest_replica() -> None:
    kernel = running()
    feed(kernel, Ticked(5.0), *stored(1, A, B))
    assert kernel.common() == 0


def test_who_has_finished_stands_for_all_later_epochs() -> None:
    kernel = running()
    assert feed(kernel, *stored(1, A, is_final=True), Ticked(5.0)) == [Mark(1)]
    assert feed(kernel, *stored(1, B, C)) == [Record(1)]
    feed(kernel, Recorded(1), Ticked(10.0))
    assert feed(kernel, *stored(2, B, C)) == [Record(2)]


def test_the_last_epoch_is_complete_when_all_have_finished() -> None:
    kernel = running()
    feed(kernel, *stored(1, A, is_final=True), Ticked(5.0), *stored(1, B))
    assert feed(kernel, *stored(2, B, is_final=True)) == []
    assert feed(kernel, *stored(1, C, is_final=True)) == [Record(2)]
    assert feed(kernel, Recorded(2)) == [Tell(2)]
    assert kernel.next_at is None


def test_who_finished_before_everyone_had_joined_is_counted() -> None:
    kernel = EpochKernel((A, B), 5.0)
    feed(kernel, Lost(), Opened(1), Joined(A, 1, False), *stored(1, A, is_final=True))
    assert feed(kernel, Joined(B, 1, True)) == [Record(1)]


def test_a_loss_sends_everyone_back_to_the_last_complete_epoch() -> None:
    kernel = running()
    feed(kernel, Ticked(5.0), *stored(1, A, B, C), Recorded(1), Ticked(10.0), *stored(2, A, B))
    assert feed(kernel, Lost()) == [Open()]
    assert feed(kernel, *stored(2, C)) == []  # Too late: the generation is over.
    assert feed(kernel, Opened(2)) == [Rewind(2, 1)]
    assert feed(kernel, *stored(2, C), Joined(A, 1, False)) == []
    assert kernel.joined == set()


def test_a_loss_while_the_word_becomes_durable_waits_for_it() -> None:
    kernel = running()
    feed(kernel, Ticked(5.0), *stored(1, A, B, C))
    assert feed(kernel, Lost(), Lost()) == []
    assert feed(kernel, Recorded(1)) == [Open()]
    assert feed(kernel, Opened(2)) == [Rewind(2, 1)]


def test_a_second_loss_during_a_recovery_begins_another_generation() -> None:
    kernel = running()
    feed(kernel, Lost(), Opened(2), Joined(A, 2, False))
    assert feed(kernel, Lost()) == [Open()]
    assert feed(kernel, Opened(3)) == [Rewind(3, 0)]
    assert kernel.joined == set()


def test_a_finished_pipeline_has_no_further_epochs() -> None:
    kernel = EpochKernel((A, B), 5.0, 7)
    feed(kernel, Lost(), Opened(4), Joined(A, 4, True), Joined(B, 4, True))
    assert kernel.next_at is None
    assert feed(kernel, Ticked(100.0)) == []
