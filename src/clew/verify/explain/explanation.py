"""What comes out: an explanation with its story of failures, or the first step for which there is none."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clew.model.names import Channel, Replica
from clew.trace.life import Life
from clew.trace.records import Head, Part, Steps


class Step(NamedTuple):
    """A step of an explanation: a commit of a replica, or what it did of it in one epoch; or a beginning."""

    replica: Replica
    life: Life
    record: Steps | Head
    part: Part | None
    """None: the beginning of an incarnation, which changes nothing."""

    def __str__(self) -> str:
        start = self.life.head
        word = "incarnation" if start.mode == "log" else "generation"
        where = f"{self.replica}, {word} {start.incarnation}"
        if isinstance(self.record, Head):
            return f"{where}, its start at {clock(self.record.time)}"
        epoch = "" if self.part is None or start.mode == "log" else f", epoch {self.part.epoch}"
        return (
            f"{where}, commit {self.record.number} at {clock(self.record.time)} (position {self.record.position:,}"
            f"{epoch})"
        )


@dataclass(frozen=True, slots=True)
class Unexplained:
    """No failure-free execution shows what this run has shown."""

    step: str
    """The first step that cannot be explained."""
    why: str

    def __str__(self) -> str:
        return f"{self.step}: {self.why}"

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {"is_explained": False, "step": self.step, "why": self.why}


class NoExplanation(Exception):
    """Carries the first step that cannot be explained to whoever asked for the explanation."""

    def __init__(self, step: Step | str, why: str) -> None:
        super().__init__(f"{step}: {why}")
        self.found = Unexplained(str(step), why)


class Facts(NamedTuple):
    """What the log of a replica says, to be compared with what its trace comes to."""

    position: int
    made: Mapping[str, int]
    """By output port or write connection."""
    written: Mapping[str, int]
    taken: Mapping[Channel, int]


@dataclass(slots=True)
class Recovery:
    """A failure, or another reason to begin again, and how everything came back."""

    who: tuple[str, ...]
    """The replicas that began again."""
    died: tuple[str, ...]
    """Those of them whose process had not ended in order."""
    incarnation: int
    """The one that began; with snapshots the generation."""
    last_seen: float
    back: float
    """When the last of them had begun again."""
    went_on: float | None
    """When one of them made its first commit after that."""
    to: int
    """The position, or with snapshots the epoch, that was gone back to."""
    discarded_commits: int = 0
    discarded: int = 0
    """How many steps were never made durable."""
    replayed: int = 0
    """How many of the events that discarded steps had taken were taken again."""
    refolded: int = 0
    """How many undone pairs were folded again."""
    settled: int = 0
    """How many write actions were tried, or asked about, again."""
    why: str = ""
    """What it failed of, if it could still tell."""

    @property
    def seconds(self) -> float:
        """How long it took, from the last sign of life on."""
        return max(0.0, self.back - self.last_seen)


@dataclass(slots=True)
class Story:
    """What one replica did, in all its incarnations."""

    incarnations: int = 0
    commits: int = 0
    steps: int = 0
    """Steps of the explanation."""
    discarded: int = 0
    undecided: int = 0
    """With snapshots: steps of epochs that are not complete yet."""
    taken: dict[str, int] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    """By write connection: how many actions were executed, each counted once."""
    settled: int = 0
    is_complete: bool = False
    moments: list[tuple[float, int, bool]] = field(default_factory=list, repr=False)
    """Every commit: when, how many steps, whether it was kept."""
    lives: list[tuple[int, float, float, bool]] = field(default_factory=list)
    """Every incarnation: its number, when it began, when it was last seen, whether it ended in order."""


@dataclass(slots=True)
class Explanation:
    """A failure-free execution that shows what the run has shown; every step of it was found to be valid."""

    mode: str
    began: float
    ended: float
    is_whole: bool
    """Whether it begins where the pipeline began, and not with the oldest segments that were kept."""
    is_complete: bool
    """Whether every replica has finished: then all that was made was taken, and all write actions were executed."""
    is_compared: bool
    """Whether it was compared with the log."""
    steps: list[Step] = field(repr=False)
    """The commits of the explanation, in a causal order."""
    stories: dict[str, Story]
    recoveries: list[Recovery]
    epochs: int = 0
    """With snapshots: the last complete epoch."""

    @property
    def step_count(self) -> int:
        """How many steps it has."""
        return sum(story.steps for story in self.stories.values())

    @property
    def discarded(self) -> int:
        """How many steps of the run do not belong to it."""
        return sum(story.discarded for story in self.stories.values())

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        numbers = ("incarnations", "commits", "steps", "discarded", "undecided", "taken", "made", "written", "settled")
        return {
            "is_explained": True,
            "mode": self.mode,
            "began": self.began,
            "ended": self.ended,
            "is_whole": self.is_whole,
            "is_complete": self.is_complete,
            "is_compared": self.is_compared,
            "epochs": self.epochs,
            "steps": self.step_count,
            "commits": len(self.steps),
            "discarded": self.discarded,
            "recoveries": [
                {**{name: getattr(each, name) for name in Recovery.__slots__}, "seconds": round(each.seconds, 6)}
                for each in self.recoveries
            ],
            "replicas": {
                name: {**{number: getattr(story, number) for number in numbers}, "is_complete": story.is_complete}
                for name, story in self.stories.items()
            },
        }


def clock(moment: float) -> str:
    """A moment of the wall clock as people read it, to the millisecond."""
    return f"{time.strftime('%H:%M:%S', time.localtime(moment))}.{int(moment % 1 * 1000):03}"
