"""`clew status LOG`: how every replica of a pipeline stands, running or finished, from its log alone."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from clew.cli.follow import columns
from clew.cli.place import open_log
from clew.cli.snapshot_status import standings
from clew.log.standing import Standing
from clew.model.names import Replica


def add_to(commands: Any) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "status",
        help="show how a running or finished pipeline stands",
        description="Reads a log, of a running or of a finished pipeline, and changes nothing. Exit code 1 if the log "
        "is damaged, 2 if there is none.",
    )
    parser.add_argument("log", metavar="LOG", help="the directory of a log, or a PostgreSQL DSN")
    parser.add_argument("--schema", metavar="NAME", help="which schema of the database, if it holds several logs")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Runs the command."""
    found = status_of(args.log, args.schema)
    if args.json:
        print(json.dumps(found), file=out)
    else:
        _print(found, out)
    return 0


def status_of(log: str, schema: str | None = None) -> dict[str, Any]:
    """Everything that the log says about how its pipeline stands."""
    store, where = open_log(log, schema)
    with contextlib.closing(store):
        reader = store.reader()
        present = set(reader.replicas())
        operators = store.description["operators"]
        epoch = None
        if store.description.get("recovery") == "snapshot":
            epoch, found = standings(reader, [each for each in _replicas(operators) if each in present])
        else:
            found = {each: reader.standing(each) for each in _replicas(operators) if each in present}
        replicas = {
            str(replica): _replica(operators[replica.operator], found.get(replica)) for replica in _replicas(operators)
        }
        return {
            "pipeline": store.description["pipeline"],
            "log": where,
            "log_id": store.log_id,
            **({} if epoch is None else {"epoch": epoch.number, "generation": epoch.generation}),
            "state": _state(list(replicas.values())),
            "replicas": replicas,
            "totals": {
                name: sum(_total(each[name]) for each in replicas.values())
                for name in ("events", "written", "waiting", "open_sets", "undone_pairs", "timers")
            },
        }


def _replicas(operators: dict[str, Any]) -> Iterator[Replica]:
    for name, operator in operators.items():
        for index in range(operator.get("replicas", 1)):
            yield Replica(name, index)


def _replica(operator: dict[str, Any], found: Standing | None) -> dict[str, Any]:
    standing = found or Standing(0, {}, {}, 0, 0, 0, 0, 0, 0)
    writes = operator.get("writes", {})
    holder = standing.holder
    marks = standing.is_finished + standing.counters.get("epoch", 0)  # The end, and the borders of epochs.
    counts = {name.removeprefix("count:"): n for name, n in standing.counters.items() if name.startswith("count:")}
    return {
        "incarnation": standing.incarnation,
        "position": standing.counters.get("position", 0),
        "is_finished": standing.is_finished,
        "holder": None if holder is None else {"who": holder.who, "is_alive": holder.is_alive},
        "events": {port: standing.events(port) - marks for port in operator.get("outputs", ())},
        "written": {name: standing.written(name) for name in writes},
        "waiting": {name: standing.events(name) - standing.written(name) for name in writes},
        "open_sets": standing.open_sets,
        "undone_pairs": standing.undone_pairs,
        "state_keys": standing.state_keys,
        "timers": standing.timers,
        "stored_outputs": standing.stored_outputs,
        "lineage_rows": standing.lineage_rows,
        "cursors": {
            str(channel): {
                "assigned": cursor.assigned,
                "released": cursor.released.floor,
                "ended": bool(cursor.ended),
            }
            for channel, cursor in standing.cursors.items()
        },
        **({"counts": counts} if counts else {}),
    }


def _state(replicas: list[dict[str, Any]]) -> str:
    """`running` if a process holds a replica's log, else `finished`, `not begun` or `stopped`."""
    if any(each["holder"] is not None and each["holder"]["is_alive"] for each in replicas):
        return "running"
    if all(each["is_finished"] and not _total(each["waiting"]) for each in replicas):
        return "finished"
    return "stopped" if any(each["incarnation"] for each in replicas) else "not begun"


def _total(value: Any) -> int:
    return sum(value.values()) if isinstance(value, dict) else int(value)


def _print(found: dict[str, Any], out: TextIO) -> None:
    print(f"pipeline {found['pipeline']!r}: {found['state']}; log {found['log']} ({found['log_id']})", file=out)
    if "epoch" in found:
        print(f"as of epoch {found['epoch']:,}, the last complete one; generation {found['generation']:,}", file=out)
    print(file=out)
    head = ("replica", "incarnation", "position", "events", "written", "waiting", "open sets", "undone", "timers")
    rows = [(*head, "finished", "held by")]
    for name, each in found["replicas"].items():
        numbers = ("incarnation", "position", "events", "written", "waiting", "open_sets", "undone_pairs", "timers")
        rows.append(
            (
                name,
                *(f"{_total(each[number]):,}" for number in numbers),
                "yes" if each["is_finished"] else "no",
                _held_by(each["holder"]),
            )
        )
    for line in columns(rows):
        print(f"  {line}", file=out)
    cursors = [
        (channel, f"{cursor['assigned']:,}", f"{cursor['released']:,}", "yes" if cursor["ended"] else "no")
        for each in found["replicas"].values()
        for channel, cursor in each["cursors"].items()
    ]
    if cursors:
        print(file=out)
        for line in columns([("connection", "assigned", "released", "ended"), *cursors]):
            print(f"  {line}", file=out)
    counts = {name: each["counts"] for name, each in found["replicas"].items() if "counts" in each}
    if counts:
        print(file=out)
        for line in counts_table(counts):
            print(f"  {line}", file=out)


def counts_table(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What operators have counted, as lines.

    >>> counts_table({"hourly": {"late": 1203}})
    ['replica  counted  number', 'hourly   late      1,203']
    """
    rows = [(replica, name, f"{number:,}") for replica, each in counts.items() for name, number in each.items()]
    return columns([("replica", "counted", "number"), *rows])


def _held_by(holder: dict[str, Any] | None) -> str:
    if holder is None:
        return "nobody"
    words = {True: "", False: ", which is gone", None: ", which cannot be seen from here"}
    return f"{holder['who']}{words[holder['is_alive']]}"
