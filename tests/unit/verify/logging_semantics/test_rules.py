"""The rules of LOG.io one by one: what each needs, and what it changes."""

from __future__ import annotations

import pytest

from clew.errors import BuildError
from clew.verify.logging_semantics import Configuration, Operator, Program, outside, system
from clew.verify.logging_semantics.programs import chain, fan_out, two_sources
from clew.verify.transparency import run

TO_THE_SINK = [
    *("READ source a", "READ source b", "COMMIT source", "SEND source->twos a", "SEND source->twos b"),
    *("RECEIVE twos a", "ASSIGN twos a to 0", "RECEIVE twos b", "ASSIGN twos b to 0", "GENERATE twos 0: ab@2"),
    *("COMMIT twos", "SEND twos->sink ab@2", "RECEIVE sink ab@2", "ASSIGN sink ab@2 to 0", "GENERATE sink 0: ab@2"),
    *("COMMIT sink", "WRITE sink ab@2"),
]


def after(program: Program, labels: list[str]) -> tuple[Configuration, set[str]]:
    """The configuration after steps with these labels, and the labels of the steps from there."""
    rules = system(program)
    at = rules.initial[0]
    for place, label in enumerate(labels):
        found = {str(known): target for known, _, target in rules.steps(at)}
        assert label in found, f"step {place + 1}, {label!r}, is not among {sorted(found)}"
        at = found[label]
    return at, {str(label) for label, _, _ in rules.steps(at)}


def test_a_record_reaches_the_outside_system_by_these_steps() -> None:
    end, _ = after(chain(2), TO_THE_SINK)
    assert outside(end) == ((), (), ("ab@2",))


def test_nothing_is_sent_before_it_is_committed() -> None:
    _, steps = after(chain(2), TO_THE_SINK[:2])
    assert not {step for step in steps if step.startswith("SEND")}
    _, steps = after(chain(2), TO_THE_SINK[:10])
    assert "COMMIT twos" in steps
    assert not {step for step in steps if step.startswith("SEND twos")}


def test_nothing_is_written_before_it_is_committed() -> None:
    _, steps = after(chain(2), TO_THE_SINK[:15])
    assert "COMMIT sink" in steps
    assert not {step for step in steps if step.startswith("WRITE")}


def test_what_is_ready_is_generated_before_the_next_event_is_taken() -> None:
    labels = [
        *TO_THE_SINK[:3],
        "READ source c",
        "COMMIT source",
        *TO_THE_SINK[3:9],
        "COMMIT twos",
        "ACK twos->source 2",
    ]
    _, steps = after(chain(3), [*labels, "SEND source->twos c"])
    assert "GENERATE twos 0: ab@2" in steps
    assert not {step for step in steps if step.startswith("RECEIVE")}


def test_a_full_window_waits_for_an_acknowledgement_of_what_is_durable() -> None:
    labels = [*TO_THE_SINK[:2], "READ source c", *TO_THE_SINK[2:9]]
    _, steps = after(chain(3), labels)
    assert not {step for step in steps if step.startswith(("SEND source", "ACK"))}
    _, steps = after(chain(3), [*labels, "COMMIT twos"])
    assert "ACK twos->source 2" in steps
    _, steps = after(chain(3), [*labels, "COMMIT twos", "ACK twos->source 2"])
    assert "SEND source->twos c" in steps


def test_a_commit_takes_everything_decided_so_far() -> None:
    at, _ = after(chain(2), TO_THE_SINK[:11])
    durable = at.processes[1].durable
    assert (durable.outputs, durable.undone, durable.assigned, durable.state) == (("ab@2",), (), (2,), 2)


def test_a_crash_loses_what_was_decided_and_not_committed() -> None:
    at, steps = after(chain(2), [*TO_THE_SINK[:10], "FAIL twos", "RECOVER twos"])
    assert at.processes[1].durable.outputs == ()
    assert "SEND source->twos a" in steps


def test_undone_pairs_are_folded_again_from_the_log_of_the_sender() -> None:
    labels = [*TO_THE_SINK[:7], "COMMIT twos", "FAIL twos", "RECOVER twos"]
    at, _ = after(chain(2), labels)
    memory = at.processes[1].memory
    assert memory is not None
    assert memory.folded == ((0, ((0, "a"),)),)
    end, _ = after(chain(2), [*labels, "SEND source->twos b", *TO_THE_SINK[7:]])
    assert outside(end) == ((), (), ("ab@2",))


def test_a_failed_sender_sends_again_and_the_receiver_leaves_out_what_is_obsolete() -> None:
    labels = [*TO_THE_SINK[:6], "ASSIGN twos a to 0", "FAIL source", "RECOVER source"]
    _, steps = after(chain(2), [*labels, "RECEIVE twos b", "ASSIGN twos b to 0", "GENERATE twos 0: ab@2"])
    assert "SEND source->twos a" in steps
    _, steps = after(
        chain(2), [*labels, "RECEIVE twos b", "ASSIGN twos b to 0", "GENERATE twos 0: ab@2", "SEND source->twos a"]
    )
    assert "RECEIVE twos obsolete 1" in steps


def test_what_a_failed_sender_had_under_way_may_be_lost() -> None:
    at, _ = after(chain(2), [*TO_THE_SINK[:5], "FAIL source", "RECOVER source with its messages lost"])
    assert at.channels[0].events == ()
    at, _ = after(chain(2), [*TO_THE_SINK[:5], "FAIL source", "RECOVER source"])
    assert [event.value for event in at.channels[0].events] == ["a", "b"]


def test_a_write_action_that_is_executed_again_is_refused() -> None:
    end, _ = after(chain(2), [*TO_THE_SINK, "FAIL sink", "RECOVER sink", "WRITE sink ab@2", "COMMIT sink"])
    assert outside(end) == ((), (), ("ab@2",))
    assert end.processes[2].durable.written == 1


def test_others_go_on_while_an_operator_is_down() -> None:
    _, steps = after(fan_out(2), [*TO_THE_SINK[:11], "FAIL one"])
    assert {"SEND twos->two ab@2", "RECOVER one"} <= steps
    assert "SEND twos->one ab@2" not in steps


def test_events_of_two_ports_meet_in_the_order_of_arrival() -> None:
    labels = ["READ left a", "COMMIT left", "SEND left->twos a", "READ right p", "COMMIT right", "SEND right->twos p"]
    _, steps = after(two_sources(1), labels)
    assert {"RECEIVE twos a", "RECEIVE twos p"} <= steps


def test_labels_can_be_run_as_values() -> None:
    model = system(chain(2))
    label = next(label for label, _, _ in model.steps(model.initial[0]) if str(label) == "READ source a")
    assert run(model, [label]).labels == (label,)


def test_a_program_names_what_is_wrong_with_it() -> None:
    with pytest.raises(BuildError, match=r"program 'p': two operators are named 's'.*Rename one"):
        Program("p", (Operator("s"), Operator("s")))
    with pytest.raises(
        BuildError, match=r"'p', operator 't', port 0: no operator 'u' is before it; those that are: s\."
    ):
        Program("p", (Operator("s"), Operator("t", inputs=("u",))))
