"""Explaining: from the trace of a run to its failure-free explanation, every step of which is checked."""

from __future__ import annotations

from collections.abc import Mapping

from clew.model.names import Replica
from clew.trace.reader import Trace
from clew.trace.records import LOG, End
from clew.verify.explain import keeping
from clew.verify.explain.explanation import Explanation, Facts, NoExplanation, Unexplained
from clew.verify.explain.ordering import in_causal_order
from clew.verify.explain.rules import Place, streams_of
from clew.verify.explain.telling import recoveries_of, stories_of
from clew.verify.explain.writes import Outside

NO_FACTS: Mapping[Replica, Facts] = {}


def explain(
    trace: Trace, facts: Mapping[Replica, Facts] = NO_FACTS, epoch: int | None = None
) -> Explanation | Unexplained:
    """The explanation of a trace, or the first step that has none.

    With the facts of the log it is also compared with these: then nobody may be working on the log. In the mode
    `snapshot` they are those of the last complete epoch, which must be given too.
    """
    try:
        return _explained(trace, facts, epoch)
    except NoExplanation as found:
        return found.found


def _explained(trace: Trace, facts: Mapping[Replica, Facts], epoch: int | None) -> Explanation:
    is_complete = all(_is_complete(lives[-1].end) for lives in trace.lives.values())
    kept: dict[Replica, keeping.Kept] = {}
    epochs = 0
    if trace.mode == LOG:
        for replica, lives in trace.lives.items():
            kept[replica] = keeping.keep_committed(lives, replica, facts.get(replica))
    else:
        recovered = keeping.recovered_epochs(trace)
        epochs = keeping.last_common(trace, recovered, epoch)
        for replica, lives in trace.lives.items():
            kept[replica] = keeping.keep_complete(lives, replica, recovered, epochs)
    heads = {replica: lives[0].head for replica, lives in trace.lives.items()}
    streams = streams_of(heads)
    places = {replica: Place(head, streams) for replica, head in heads.items()}
    steps = in_causal_order({replica: each.steps for replica, each in kept.items()}, places)
    outside: dict[Replica, Outside] = {}
    for replica, lives in trace.lives.items():
        outside[replica] = Outside(replica, lives, kept[replica].discarded)
        outside[replica].check()
    if is_complete:
        _check_end(places, outside)
    for replica, found in facts.items():
        if replica in places:
            _compare(replica, found, places[replica], outside[replica], is_complete)
    last_seen = [life.last_seen for lives in trace.lives.values() for life in lives]
    return Explanation(
        mode=trace.mode,
        began=min(head.time for head in heads.values()),
        ended=max(last_seen),
        is_whole=all(head.is_start and head.position == 0 for head in heads.values()),
        is_complete=is_complete,
        is_compared=bool(facts),
        steps=steps,
        stories=stories_of(trace, kept, places, outside),
        recoveries=recoveries_of(trace, kept, places, outside),
        epochs=epochs,
    )


def _is_complete(end: End | None) -> bool:
    return end is not None and end.is_complete


def _check_end(places: Mapping[Replica, Place], outside: Mapping[Replica, Outside]) -> None:
    """Every replica has finished: all that was made was taken, all that was to be written was."""
    for replica, place in places.items():
        for channel, stream, taken, ended in zip(
            place.names.channels, place.inbound, place.taken, place.ended, strict=True
        ):
            if taken != stream.made or not ended:
                raise NoExplanation(
                    f"{replica}, its end",
                    f"it finished with {stream.name}/{taken} as the last event that it took on {channel}; made were "
                    f"{stream.made}, the end mark included",
                )
        for connection in outside[replica].connections:
            if connection.last != connection.made:
                raise NoExplanation(
                    f"{replica}, its end",
                    f"it finished with {connection.last} write actions of {connection.name} executed; made were "
                    f"{connection.made}",
                )


def _compare(replica: Replica, facts: Facts, place: Place, outside: Outside, is_complete: bool) -> None:
    """The explanation has come to what the log holds."""
    found = [("position", place.position, facts.position)]
    found += [
        (f"last number of {name}", made, facts.made.get(name, 0))
        for name, made in zip(place.names.outs, place.made, strict=True)
    ]
    found += [
        (f"last event taken on {channel}", taken, facts.taken.get(channel, 0))
        for channel, taken in zip(place.names.channels, place.taken, strict=True)
    ]
    for connection, name in zip(outside.connections, place.names.writes, strict=True):
        written = facts.written.get(name, 0)
        if written > connection.last or (is_complete and written != connection.last):
            raise NoExplanation(
                f"{replica}, its log",
                f"it says that {written} write actions of {connection.name} are done; {connection.last} were seen",
            )
    for what, its, logged in found:
        if its != logged:
            raise NoExplanation(
                f"{replica}, the end of its trace",
                f"the explanation comes to {what} {its:,}; its log says {logged:,}. Steps are missing in the trace, as "
                f"when a run went on without one or the machine lost its power",
            )
