"""Laws of explanations: every run of the small simulation has one, and no falsified trace has."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.laws.trace_mutations import MUTATIONS
from tests.laws.traced_runs import Run

from clew.trace.framing import MAGIC, encode
from clew.trace.reader import Trace, read_trace
from clew.trace.records import LOG, SNAPSHOT
from clew.verify.explain import Explanation, Unexplained, explain
from clew.verify.explain.explanation import Facts

seeds = st.integers(min_value=0, max_value=10**9)
modes = st.sampled_from((LOG, SNAPSHOT))
Mutation = Callable[[Trace, Random], Trace | None]


def explained(trace: Trace, facts: dict[object, Facts] | None = None) -> Explanation:
    found = explain(trace, facts or {})  # type: ignore[arg-type]
    assert isinstance(found, Explanation), str(found)
    return found


@given(seeds, modes)
def test_every_run_is_explained_and_the_numbers_are_what_happened(seed: int, mode: str) -> None:
    run = Run(seed, mode)
    found = explained(run.trace)
    assert found.is_complete
    assert found.is_whole
    assert (found.step_count, found.discarded) == (run.kept_steps, run.discarded)
    for name, actions in run.outside.items():
        assert sorted(set(actions)) == list(range(1, run.nodes[name].state.made[0] + 1))
        assert found.stories[name].written["w"] == len(set(actions))
    assert len({each.incarnation for each in found.recoveries}) <= run.failed
    if mode == LOG:
        assert len(found.recoveries) == run.failed


@given(seeds, modes)
def test_the_order_of_an_explanation_is_causal(seed: int, mode: str) -> None:
    """Checked without the rules: what is taken was made by a step before, and each replica's steps keep their order."""
    run = Run(seed, mode)
    made: set[tuple[str, int]] = set()
    reached: dict[str, float] = {}
    for step in explained(run.trace).steps:
        part = step.part
        assert part is not None
        senders = run.nodes[step.replica.operator].senders
        for place, first, last in zip(part.took[::3], part.took[1::3], part.took[2::3], strict=True):
            assert {(senders[place], number) for number in range(first, last + 1)} <= made
        for marks in (part.ended, part.held):
            assert {(senders[place], number) for place, number in zip(marks[::2], marks[1::2], strict=True)} <= made
        for first, last in zip(part.made[1::3], part.made[2::3], strict=True):
            made |= {(step.replica.operator, number) for number in range(first, last + 1)}
        made |= {(step.replica.operator, number) for number in (part.closed + part.borders)[1::2]}
        assert reached.get(step.replica.operator, 0.0) <= step.record.time
        reached[step.replica.operator] = step.record.time


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("mode", [LOG, SNAPSHOT])
def test_no_falsified_trace_is_explained(mutation: Mutation, mode: str) -> None:
    """Each way to falsify a trace is tried on many runs; it must apply somewhere, and never pass."""
    tried = falsify(mutation, mode, range(60))
    only_snapshots = ("generation_elsewhere", "snapshot_missing")
    assert tried > 5 or (mode == LOG and mutation.__name__ in only_snapshots)


@pytest.mark.soak
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("mode", [LOG, SNAPSHOT])
def test_no_falsified_trace_is_explained_in_many_runs(mutation: Mutation, mode: str) -> None:
    falsify(mutation, mode, range(1000, 2000))


@lru_cache(maxsize=200)
def trace_of(seed: int, mode: str) -> Trace:
    return Run(seed, mode).trace


def falsify(mutation: Mutation, mode: str, seeds: range) -> int:
    """How many falsified traces were refused; fails at the first that is explained, and says how to see it again."""
    tried = 0
    for seed in seeds:
        trace = mutation(trace_of(seed, mode), Random(seed))
        if trace is not None:
            tried += 1
            found = explain(trace)
            assert isinstance(found, Unexplained), (
                f"the trace of Run({seed}, {mode!r}) is explained although it was falsified by {mutation.__name__}; "
                f"repeat: {mutation.__name__}(Run({seed}, {mode!r}).trace, Random({seed}))"
            )
            assert found.step
            assert found.why
    return tried


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seeds, modes)
def test_a_trace_that_was_written_and_read_again_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, seed: int, mode: str
) -> None:
    trace = Run(seed, mode).trace
    root = tmp_path_factory.mktemp("trace")
    save(trace, root)
    read = read_trace(root)
    assert read.lives == dict(sorted(trace.lives.items()))
    assert explained(read).as_dict()["recoveries"] == explained(trace).as_dict()["recoveries"]


def save(trace: Trace, root: Path) -> None:
    """Each life in a segment of its own."""
    for replica, lives in trace.lives.items():
        folder = root / f"{replica.operator}-{replica.index}"
        folder.mkdir(parents=True)
        for number, life in enumerate(lives, 1):
            data = MAGIC + encode(life.head) + b"".join(map(encode, life.told))
            (folder / f"{number:06}.trace").write_bytes(data)


@given(seeds)
def test_the_facts_of_a_log_must_agree(seed: int) -> None:
    run = Run(seed, LOG)
    facts = {
        node.replica: Facts(
            node.state.position,
            dict(zip(node.names.outs, node.state.made, strict=True)),
            {"w": node.state.made[0]} if node.is_sink else {},
            dict(zip(node.names.channels, node.state.taken, strict=True)),
        )
        for node in run.nodes.values()
    }
    assert explained(run.trace, facts).is_compared  # type: ignore[arg-type]
    replica = sorted(facts)[seed % len(facts)]
    made = {name: number + 1 for name, number in facts[replica].made.items()}
    found = explain(run.trace, {**facts, replica: facts[replica]._replace(made=made)})
    assert isinstance(found, Unexplained)
    assert "its log says" in found.why


@given(seeds, st.integers(min_value=0, max_value=30))
def test_a_run_that_was_cut_off_is_explained_too(seed: int, cut: int) -> None:
    """All processes are killed at some moment by the clock: what every replica had written until then has a sense."""
    trace = copy.deepcopy(Run(seed, LOG, failures=0).trace)
    times = sorted(record.time for lives in trace.lives.values() for record in lives[0].told)
    moment = times[min(cut, len(times) - 1)]
    for lives in trace.lives.values():
        lives[0].told[:] = [record for record in lives[0].told if record.time <= moment]
    found = explained(trace)
    assert not found.is_complete or moment == times[-1]
