"""The passage between Spark's thread and the moves of the source, with a script in Spark's place."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

import clew
from clew.connect.spark_streams import Passage, StreamSource
from clew.errors import MoveError, OutsideError


class Frame:
    """A micro-batch; remembers whether it was computed for nothing."""

    def __init__(self) -> None:
        self.is_wasted = False

    @property
    def write(self) -> Any:
        return SimpleNamespace(format=lambda name: SimpleNamespace(mode=lambda mode: SimpleNamespace(save=self._save)))

    def _save(self) -> None:
        self.is_wasted = True


class Query:
    """A streaming query that has been started."""

    id = "the-query"
    isActive = True
    error: Exception | None = None

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        self.isActive = False


def begun() -> tuple[Passage, Query]:
    passage, query = Passage(), Query()
    passage.begin(lambda deliver: query)  # type: ignore[arg-type, return-value]
    return passage, query


class Delivery(threading.Thread):
    """Spark's thread delivering one batch; `error` is what it was told instead of a return."""

    def __init__(self, passage: Passage, frame: Frame, batch: int) -> None:
        super().__init__(daemon=True)
        self.work = (passage, frame, batch)
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        passage, frame, batch = self.work
        try:
            passage.deliver(frame, batch)  # type: ignore[arg-type]
        except Exception as error:
            self.error = error


def test_spark_is_told_when_the_batch_is_durable_and_not_before() -> None:
    passage, _ = begun()
    frame = Frame()
    delivery = Delivery(passage, frame, 0)
    assert passage.has_news(5.0)
    assert passage.delivered() == 0
    assert passage.frame() is frame  # type: ignore[comparison-overlap]
    passage.durable(-1)
    delivery.join(0.1)
    assert delivery.is_alive()
    passage.durable(0)
    delivery.join(5.0)
    assert not delivery.is_alive()
    assert (delivery.error, frame.is_wasted, passage.delivered()) == (None, False, None)


@pytest.mark.parametrize("is_known_first", [True, False])
def test_a_batch_that_is_durable_already_is_computed_for_spark_alone(is_known_first: bool) -> None:
    passage, _ = begun()
    frame = Frame()
    if is_known_first:
        passage.durable(3)
    delivery = Delivery(passage, frame, 3)
    if not is_known_first:
        assert passage.has_news(5.0)
        passage.durable(3)
    delivery.join(5.0)
    assert (delivery.is_alive(), delivery.error, frame.is_wasted, passage.delivered()) == (False, None, True, None)


def test_a_batch_that_is_not_durable_at_the_end_is_not_done_for_spark() -> None:
    passage, query = begun()
    delivery = Delivery(passage, Frame(), 0)
    assert passage.has_news(5.0)
    passage.close()
    delivery.join(5.0)
    assert isinstance(delivery.error, MoveError)
    assert not query.isActive
    assert not passage.is_over()


def test_the_end_of_the_query_is_news_and_its_failure_an_error() -> None:
    passage, query = begun()
    assert not passage.has_news(0.01)
    query.isActive = False
    assert passage.has_news(0.01)
    query.error = ValueError("the topic is gone")
    with pytest.raises(OutsideError, match="the streaming query has failed: ValueError: the topic is gone"):
        passage.has_news(0.01)


def test_the_simulator_has_no_streams() -> None:
    source = clew.read_stream(lambda spark: spark, checkpoint="c")
    assert isinstance(source, StreamSource)
    pipeline = clew.Pipeline("stream")
    pipeline.source("words", source).write("save", clew.testing.Outside("save").writer())
    with pytest.raises(clew.Violation, match=r"put clew.testing.scripted\(events, replayable=False\) in its place"):
        clew.testing.run(pipeline)
