"""Turns: of the cautious replicas of one host, one attempts something at a time."""

from __future__ import annotations

import threading

from clew.runtime.turns import Turn

BEGIN = {"attempt:fold/0": 1, "attempt:fold/0:size": 1, "attempt:fold/0:0": 7}
NEXT = {"attempt:fold/0": 0, "attempt:generate": 1}
END = {"attempt:generate": 0}


def never() -> bool:
    return False


def test_a_neighbour_waits_until_the_mark_has_ended_durably() -> None:
    shared = threading.Lock()
    one, other = Turn(shared), Turn(shared)
    one.before(BEGIN, never)
    one.after()
    waiting = threading.Thread(target=other.before, args=(BEGIN, never))
    waiting.start()
    one.before(NEXT, never)
    one.after()
    one.before(END, never)
    assert shared.locked()  # The end is not durable yet.
    waiting.join(0.1)
    assert waiting.is_alive()
    one.after()
    waiting.join(10)
    assert not waiting.is_alive()
    assert shared.locked()


def test_commits_without_marks_need_no_turn() -> None:
    shared = threading.Lock()
    shared.acquire()
    turn = Turn(shared)
    turn.before({"order": 5}, never)
    turn.after()
    assert shared.locked()


def test_who_waits_for_a_turn_can_be_ended() -> None:
    shared = threading.Lock()
    shared.acquire()
    Turn(shared).before(BEGIN, lambda: True)
    assert shared.locked()
