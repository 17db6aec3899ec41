"""Words: an explanation in sentences, the same for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterator

from clew.trace.records import LOG
from clew.verify.explain.explanation import Explanation, Recovery, Story, clock

NUMBERS = ("commits", "steps", "discarded", "events taken", "events made", "actions written")
"""What the table shows of a replica, besides how often it began."""


def story_numbers(story: Story) -> tuple[int, ...]:
    """What the table shows of a replica."""
    return (
        story.incarnations,
        story.commits,
        story.steps,
        story.discarded,
        sum(story.taken.values()),
        sum(story.made.values()),
        sum(story.written.values()),
    )


def recovery_lines(recovery: Recovery, mode: str) -> Iterator[str]:
    """A failure and what followed, as lines of a timeline."""
    who = ", ".join(recovery.died or recovery.who)
    if recovery.died:
        yield f"{clock(recovery.last_seen)}  {who} died: nothing was heard after this moment"
    else:
        why = f": {recovery.why}" if recovery.why else ""
        yield f"{clock(recovery.last_seen)}  {who} ended in order{why}"
    for line in recovery_words(recovery, mode):
        yield f"{'':12}  {line}"


def recovery_words(recovery: Recovery, mode: str) -> list[str]:
    """What a recovery discarded and what was done again, in sentences.

    >>> lost = Recovery(("sums",), ("sums",), 2, 10.0, 10.5, None, 40, 1, 3, 3, 2)
    >>> for line in recovery_words(lost, "log"): print(line)
    back after 0.50 s as incarnation 2, from position 40
    discarded: 1 commit with 3 steps that had not become durable
    done again: 3 events taken, 2 undone pairs folded
    """
    if mode == LOG:
        back = f"as incarnation {recovery.incarnation}, from position {recovery.to:,}"
        reason = "that had not become durable"
    else:
        back = f"as generation {recovery.incarnation}, all {len(recovery.who)} replicas from epoch {recovery.to:,}"
        reason = "of epochs that were not complete"
    lines = [f"back after {recovery.seconds:.2f} s {back}"]
    if recovery.discarded:
        commits, steps = counted(recovery.discarded_commits, "commit"), counted(recovery.discarded, "step")
        lines.append(f"discarded: {commits} with {steps} {reason}")
    else:
        lines.append("discarded: nothing")
    again = [
        f"{counted(number, what)} {done}"
        for number, what, done in (
            (recovery.replayed, "event", "taken"),
            (recovery.refolded, "undone pair", "folded"),
            (recovery.settled, "write action", "settled"),
        )
        if number
    ]
    if again:
        lines.append(f"done again: {', '.join(again)}")
    return lines


def end_words(found: Explanation) -> str:
    """How the run stands at the end of its trace."""
    if found.is_complete:
        return "every replica has finished"
    undecided = sum(story.undecided for story in found.stories.values())
    waiting = f"; {counted(undecided, 'step')} belong to epochs that are not complete" if undecided else ""
    return f"the trace ends before the pipeline has finished{waiting}"


def verdict_lines(found: Explanation) -> Iterator[str]:
    """What has been shown, in sentences."""
    yield (
        f"A run without failures explains this one: {counted(found.step_count, 'step')} in "
        f"{counted(len(found.steps), 'commit')}, each of them valid; {counted(found.discarded, 'step')} discarded."
    )
    actions = sum(sum(story.written.values()) for story in found.stories.values())
    settled = sum(story.settled for story in found.stories.values())
    again = f" ({settled:,} tried again after a failure)" if settled else ""
    if actions:
        yield f"The outputs are equal: {counted(actions, 'write action')} executed, in order and each once{again}."
    if found.is_complete:
        yield "All events that were made were taken, and all write actions executed."
    if found.is_compared:
        yield "The log agrees: positions, cursors, events and write actions are those of the explanation."


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "step"), counted(1200, "step")
    ('1 step', '1,200 steps')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
