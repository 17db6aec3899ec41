"""The models that come with Clew on larger programs and with any number of failures; left out of `make test`."""

from __future__ import annotations

import pytest

from clew.verify.semantics.graphs import GRAPHS
from clew.verify.transparency import Explained
from clew.verify.transparency.catalog import LARGE, SMALL, barrier_verdicts, logging_verdicts

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("place", range(len(SMALL)))
def test_any_number_of_failures_of_the_log_protocol(place: int) -> None:
    for verdict in logging_verdicts(None, (SMALL[place],)):
        assert isinstance(verdict, Explained), str(verdict)
        print(verdict, verdict.counts)


@pytest.mark.parametrize("place", range(len(LARGE)))
def test_two_failures_of_the_log_protocol_with_more_records(place: int) -> None:
    for verdict in logging_verdicts(2, (LARGE[place],)):
        assert isinstance(verdict, Explained), str(verdict)
        print(verdict, verdict.counts)


@pytest.mark.parametrize("name", GRAPHS)
def test_two_failures_of_barriers_with_more_events(name: str) -> None:
    for verdict in barrier_verdicts(name, 2, events=2):
        assert isinstance(verdict, Explained), str(verdict)
        print(verdict, verdict.counts)
