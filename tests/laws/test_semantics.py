"""Laws of the ABS semantics: it is what the definitions say word for word, and the lemmas of chapters 6 and 7 hold."""

from __future__ import annotations

from itertools import islice, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.naive_abs import Naive, random_program

from clew.verify.semantics import ABS, Configuration, Message, Rules, Step, gce, initial, lcs, out, steps
from clew.verify.semantics.actions import applied
from clew.verify.semantics.causality import happens_before, permutations, random_permutation
from clew.verify.semantics.configuration import arranged
from clew.verify.semantics.exploration import explore_by_chance
from clew.verify.semantics.graphs import chain
from clew.verify.semantics.mapping import explain, first_unexplained
from clew.verify.semantics.rules import F_RECOVER
from clew.verify.semantics.traces import Trace, application, is_valid, random_trace
from clew.verify.semantics.variants import MAXIMUM
from clew.verify.vectors.abs_forms import plain, program_in

seeds = st.integers(0, 2**32)


def drawn(seed: int, *, failures: int = 3, length: int = 80, size: int = 2) -> tuple[Configuration, Trace]:
    """A random program in its initial configuration, and a random trace of it."""
    random = Random(seed)
    begin = initial(program_in(random_program(random, tasks=size + 1, events=size, epochs=size)))
    return begin, random_trace(begin, random, failures=failures, failure_chance=0.12, length=length)


def written(step: Step) -> list[object]:
    """A step as the naive oracle writes it."""
    kinds = {"I-EVENT": "event", "I-BORDER": "border", "F-FAIL": "fail", "F-RECOVER": "recover"}
    stream = [step.actions[0].stream] if step.rule == "I-EVENT" else []
    return [kinds[step.rule], *([] if step.task is None else [step.task]), *stream]


# The definitions of chapter 4.


@settings(max_examples=60)
@given(seeds)
def test_steps_and_outputs_are_those_of_the_definitions(seed: int) -> None:
    random = Random(seed)
    given_program = random_program(random)
    c, naive = initial(program_in(given_program)), Naive(given_program)
    for _ in range(60):
        found = list(steps(c))
        choices = naive.enabled(failures=True)
        assert sorted(map(repr, (written(step) for step, _, _ in found))) == sorted(map(repr, choices))
        assert gce(c) == naive.gce()
        assert {tuple(message) for message in plain(out(c))} == naive.out()
        usual = [one for one in found if one[0].rule != "F-FAIL"]
        step, _, c = random.choice(found if not usual or random.random() < 0.1 else usual)
        naive.take(written(step))


@settings(max_examples=60)
@given(seeds)
def test_the_latest_common_snapshot_of_itself_is_itself(seed: int) -> None:
    begin, trace = drawn(seed)
    for c in application(trace, begin):
        assert lcs(lcs(c)) == lcs(c)
        assert hash(lcs(lcs(c))) == hash(lcs(c))
        assert out(lcs(c)) == out(c)
        assert not lcs(c).has_failed


# Chapter 6: validity of prefixes and of causal permutations.


@settings(max_examples=30)
@given(seeds)
def test_lemma_6_4_a_prefix_of_a_valid_trace_is_valid(seed: int) -> None:
    begin, trace = drawn(seed)
    whole = application(trace, begin)
    for size in range(len(trace) + 1):
        assert application(trace[:size], begin) == whole[: size + 1]


@settings(max_examples=60)
@given(seeds)
def test_lemma_6_8_a_causal_permutation_is_valid_and_ends_in_the_same_configuration(seed: int) -> None:
    begin, trace = drawn(seed)
    other = random_permutation(trace, begin.program, Random(seed))
    assert sorted(map(repr, other)) == sorted(map(repr, trace))
    assert application(other, begin)[-1] == application(trace, begin)[-1]


@settings(max_examples=30)
@given(seeds)
def test_all_permutations_of_a_short_trace(seed: int) -> None:
    begin, trace = drawn(seed, length=7)
    found = list(islice(permutations(trace, begin.program), 600))
    assert found[0] == trace
    assert len(set(found)) == len(found)
    for other in found:
        assert application(other, begin)[-1] == application(trace, begin)[-1]


@settings(max_examples=10)
@given(seeds)
def test_every_permutation_is_drawn_that_exists(seed: int) -> None:
    begin, trace = drawn(seed, length=5)
    found = set(islice(permutations(trace, begin.program), 41))
    if len(found) <= 40:
        random = Random(seed)
        assert {random_permutation(trace, begin.program, random) for _ in range(3000)} == found


@settings(max_examples=60)
@given(seeds)
def test_neighbours_that_are_causally_ordered_cannot_be_swapped(seed: int) -> None:
    begin, trace = drawn(seed)
    is_before = happens_before(trace, begin.program)
    for i, (one, two) in enumerate(pairwise(trace)):
        swapped = (*trace[:i], two, one, *trace[i + 2 :])
        if not is_before(i, i + 1):
            assert is_valid(swapped, begin)
        elif {one.rule, two.rule} <= {"I-EVENT", "I-BORDER"}:
            assert not is_valid(swapped, begin)


def all_messages(c: Configuration) -> set[Message]:
    return {message for slots in c.messages for slot in slots for message in slot}


def naive_order(trace: Trace, begin: Configuration) -> set[tuple[int, int]]:
    """Definition 6.5 clause by clause: pairs, and then the closure of them."""
    program = begin.program
    whole = [all_messages(c) for c in application(trace, begin)]
    everything = set().union(*whole)

    def needs(step: Step, message: Message) -> bool:
        """Are the actions of the step undefined wherever this message is missing? So on all the others, that is."""
        if step.task is None:
            return False
        rest = arranged(program, frozenset(everything - {message}))
        return applied(step.actions, program, program.tasks[step.task], step.numbers, rest) is None

    def is_direct(i: int, j: int) -> bool:
        if F_RECOVER in (trace[i], trace[j]) or trace[i].task == trace[j].task:
            return True
        return any(needs(trace[j], message) for message in whole[i + 1] - whole[i])

    pairs = {(i, j) for j in range(len(trace)) for i in range(j) if is_direct(i, j)}
    for k in range(len(trace)):
        before, after = {i for i, j in pairs if j == k}, {j for i, j in pairs if i == k}
        pairs |= {(i, j) for i in before for j in after}
    return pairs


@settings(max_examples=15)
@given(seeds)
def test_the_causal_order_is_that_of_its_definition(seed: int) -> None:
    begin, trace = drawn(seed, length=14)
    is_before = happens_before(trace, begin.program)
    found = {(i, j) for j in range(len(trace)) for i in range(len(trace)) if is_before(i, j)}
    assert found == naive_order(trace, begin)


# Chapter 7: the lemmas on which the theorem rests, and the theorem.


def breaks_lemma_7_1(begin: Configuration, trace: Trace, rules: Rules = ABS) -> list[Step]:
    """The steps that change the output although they commit no epoch."""
    found = pairwise(application(trace, begin, rules))
    return [
        step
        for step, (before, after) in zip(trace, found, strict=True)
        if rules.out(before) != rules.out(after)
        and not (step.rule == "I-BORDER" and rules.gce(before) != rules.gce(after))
    ]


@settings(max_examples=60)
@given(seeds)
def test_lemma_7_1_only_committing_border_steps_change_the_output(seed: int) -> None:
    begin, trace = drawn(seed)
    assert breaks_lemma_7_1(begin, trace) == []
    for before, after in pairwise(application(trace, begin)):
        assert out(before) <= out(after)


def test_a_broken_protocol_breaks_lemma_7_1() -> None:
    begin = initial(chain())
    found = [breaks_lemma_7_1(begin, random_trace(begin, Random(seed), rules=MAXIMUM), MAXIMUM) for seed in range(10)]
    assert any(step.rule == "I-EVENT" for steps_found in found for step in steps_found)


@settings(max_examples=60)
@given(seeds)
def test_lemma_7_2_no_step_happens_before_one_of_an_earlier_epoch(seed: int) -> None:
    begin, trace = drawn(seed)
    is_before = happens_before(trace, begin.program)
    for generation in explain(trace, begin).generations:
        numbered = [(n, step) for n, step in enumerate(generation.steps, generation.begin) if step.epoch is not None]
        for i, one in numbered:
            for j, two in numbered:
                if is_before(i, j):
                    assert one.epoch is not None
                    assert two.epoch is not None
                    assert one.epoch <= two.epoch


@settings(max_examples=60)
@given(seeds)
def test_lemmas_7_3_and_7_4_of_each_generation(seed: int) -> None:
    begin, trace = drawn(seed)
    whole = application(trace, begin)
    for generation in explain(trace, begin).generations:
        c = whole[generation.begin]
        usual, moved = application(generation.steps, c), application(generation.reordered, c)
        commits = [
            [
                out(after)
                for step, (before, after) in zip(taken, pairwise(found), strict=True)
                if out(before) != out(after)
            ]
            for taken, found in ((generation.steps, usual), (generation.reordered, moved))
        ]
        assert commits[0] == commits[1]
        assert moved[-1] == usual[-1]
        stripped = moved[len(generation.stripped)]
        assert lcs(stripped) == lcs(moved[-1])
        assert stripped == lcs(moved[-1])


def explained(seed: int, **sizes: int) -> tuple[int, int]:
    """Draws a trace and explains it; how many steps it had, and how many of them were recoveries."""
    begin, trace = drawn(seed, **sizes)
    explanation = explain(trace, begin)
    assert all(step.rule in ("I-EVENT", "I-BORDER") for step in explanation.trace)
    assert list(explanation.mapping) == sorted(explanation.mapping)
    assert len(explanation.mapping) == len(trace) + 1
    assert is_valid(explanation.trace, begin, ABS.without_failures())
    where = first_unexplained(trace, begin, explanation)
    assert where is None, f"configuration {where} of drawn({seed}, **{sizes})"
    return len(trace), trace.count(F_RECOVER)


@settings(max_examples=100)
@given(seeds)
def test_theorem_6_12_the_trace_mapping_explains_every_execution(seed: int) -> None:
    explained(seed)


@pytest.mark.soak
def test_many_traces(capsys: pytest.CaptureFixture[str]) -> None:
    counts = [explained(seed, failures=6, length=400, size=4) for seed in range(6000)]
    with capsys.disabled():
        print(f"\n{len(counts)} traces, {sum(c[0] for c in counts)} steps, {sum(c[1] for c in counts)} recoveries")


@settings(max_examples=30)
@given(seeds)
def test_random_exploration_finds_nothing_unexplained(seed: int) -> None:
    program = program_in(random_program(Random(seed)))
    assert explore_by_chance(program, range(seed, seed + 3)) is None
