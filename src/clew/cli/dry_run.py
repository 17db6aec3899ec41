"""`clew dry-run FILE`: what would run where, and what is guaranteed; nothing is started."""

from __future__ import annotations

import argparse
import json
from typing import Any, TextIO

from clew.cli.follow import columns
from clew.cli.load import load
from clew.cli.mermaid import edges_of, mermaid
from clew.cli.place import shown
from clew.errors import LogError, LogNotFound, RunError
from clew.log.sqlite import open_sqlite
from clew.model.connection import Kind
from clew.model.graph import Graph, Node
from clew.model.source import Source
from clew.protocol.eligible import check_snapshots
from clew.runtime.groups import Group
from clew.runtime.run import groups_of
from clew.runtime.session import SPARE_SLOTS
from clew.runtime.spec import log_place

REPLAYABLE = "replayable: read again from the last offset in the log"
STORED = "not replayable: stored in the log before an event of it leaves"
ASKED = "asked inside a generation: the answer counts with what that gives out, or is asked for again"
ONCE = {
    Kind.CONDITIONAL: "exactly once, always: the outside system records the action's id with the effect",
    Kind.CHECKABLE: "exactly once: asked whether it is in, once the predecessor is known to be dead",
    Kind.IDEMPOTENT: "exactly once: done again, once the predecessor is known to be dead",
}
ASSUMED = {
    Kind.CONDITIONAL: None,
    Kind.CHECKABLE: "no request of the dead process is still under way in the network",
    Kind.IDEMPOTENT: "no request of the dead process is still under way in the network",
}
SNAPSHOTS = "possible: a failure sends all back to the last complete epoch, and writes wait for the end of theirs"
IN_DRIVER = "shares the driver's fate, so it is outside the non-blocking claim"


def add_to(commands: Any) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "dry-run",
        help="show what would run where, and what is guaranteed",
        description="Shows the graph of the pipeline of FILE, the hosts and task slots that it needs, and what is "
        "guaranteed for each operator. Starts nothing.",
    )
    parser.add_argument("file", metavar="FILE", help="a Python file that defines `pipeline`, or `build()`")
    parser.add_argument("--log", metavar="PLACE", help="the log that would be used, as for `clew run`")
    parser.add_argument("--mermaid", action="store_true", help="print only the graph, as a Mermaid flowchart")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Runs the command."""
    graph = load(args.file)
    if args.mermaid and not args.json:
        print(mermaid(graph), file=out)
        return 0
    plan = plan_of(graph, args.log)
    if args.json:
        print(json.dumps(plan), file=out)
    else:
        _print(plan, out)
    return 0


def plan_of(graph: Graph, log: str | None) -> dict[str, Any]:
    """Everything that can be said before a run."""
    groups = groups_of(graph)
    hosts = [group for group in groups if not group.is_in_driver]
    kept = 1 if len(hosts) < len(groups) else 0
    return {
        "pipeline": graph.name,
        "connections": [
            f"{sender}.{output} -> {receiver}.{port}" for sender, output, receiver, port in edges_of(graph)
        ],
        "operators": [_operator(graph, node, groups) for node in graph.nodes.values()],
        "hosts": [{"host": group.name, "runs": _runs(group)} for group in groups],
        "slots": {
            "needed": len(hosts) + kept,
            "hosts": len(hosts),
            "kept_for_dataframe_jobs": kept,
            "local_master": f"local[{len(groups) + SPARE_SLOTS}]",
        },
        "scopes": [f"{scope.start} to {scope.target}" for scope in graph.scopes],
        "log": _log(graph, log),
        "snapshots": _snapshots(graph),
        "mermaid": mermaid(graph),
    }


def _operator(graph: Graph, node: Node, groups: list[Group]) -> dict[str, Any]:
    own = [group for group in groups if any(replica.operator == node.name for replica in group.replicas)]
    is_in_driver = any(group.is_in_driver for group in own)
    return {
        "operator": node.name,
        "kind": "source" if node.is_source else "sink" if node.is_sink else "middle",
        "class": type(node.definition).__name__,
        "replicas": node.replicas,
        "runs": "driver" if is_in_driver else "Spark task",
        "hosts": [group.name for group in own],
        "reads": _reads(node),
        "writes": [
            {
                "connection": name,
                "kind": str(Kind(connection.kind or "")),
                "guarantee": ONCE[Kind(connection.kind or "")],
                "assumes": ASSUMED[Kind(connection.kind or "")],
            }
            for name, connection in node.writes.items()
        ],
        "times": None if node.stamps is None else str(node.stamps),
        "is_timely": bool(getattr(node.definition, "is_timely", False)),
        "captures_lineage": sorted(node.capture.outputs),
        "sets_aside_what_always_fails": node.dead_letters,
        "others_go_on_while_it_is_down": not is_in_driver,
    }


def _reads(node: Node) -> list[dict[str, Any]]:
    if isinstance(node.definition, Source):
        reads = {node.definition.connection: node.definition.is_replayable}
    else:
        reads = {name: connection.is_replayable for name, connection in node.reads.items()}
    return [
        {
            "connection": name,
            "is_replayable": is_replayable,
            "guarantee": (REPLAYABLE if is_replayable else STORED) if node.is_source else ASKED,
        }
        for name, is_replayable in reads.items()
    ]


def _runs(group: Group) -> str:
    return "driver" if group.is_in_driver else "Spark task"


def _log(graph: Graph, log: str | None) -> dict[str, str]:
    place = log_place(log, graph.name, "log", "")
    if place.kind == "postgres":
        state = "not looked at"
    else:
        try:
            open_sqlite(place.where).close()
            open_sqlite(place.where, graph.describe()).close()
            state = "is there: a run goes on where it was"
        except LogNotFound:
            state = "is made by the run"
        except LogError as error:
            state = f"would be refused: {error}"
    return {"kind": place.kind, "where": shown(place), "state": state}


def _snapshots(graph: Graph) -> dict[str, Any]:
    """Whether the pipeline can run with recovery='snapshot'."""
    try:
        check_snapshots(graph)
    except RunError as error:
        return {"is_possible": False, "why_not": str(error)}
    return {"is_possible": True, "why_not": None}


def _print(plan: dict[str, Any], out: TextIO) -> None:
    print(f"pipeline {plan['pipeline']!r}\n", file=out)
    for connection in plan["connections"]:
        print(f"  {connection}", file=out)
    print(file=out)
    rows = [("operator", "runs in", "replicas", "lineage of")]
    for each in plan["operators"]:
        captured = ", ".join(each["captures_lineage"]) or "-"
        rows.append((each["operator"], each["runs"], str(each["replicas"]), captured))
    for line in columns(rows):
        print(f"  {line}", file=out)
    print("\nguarantees after a crash, for each operator: every event counts once, nothing is lost\n", file=out)
    for each in plan["operators"]:
        for line in _guarantees(each):
            print(f"  {each['operator']}: {line}", file=out)
    slots = plan["slots"]
    kept = " and one kept for DataFrame jobs" if slots["kept_for_dataframe_jobs"] else ""
    print(
        f"\ntask slots needed: {slots['needed']}, one for each host ({slots['hosts']}){kept}; "
        f"without a master: {slots['local_master']}",
        file=out,
    )
    shared = [host["host"] for host in plan["hosts"] if "+" in host["host"]]
    if shared:
        print(f"hosts that operators share, and so fail together: {', '.join(shared)}", file=out)
    if plan["scopes"]:
        print(f"lineage: {'; '.join(plan['scopes'])}", file=out)
    print(f"log: {plan['log']['where']} ({plan['log']['state']})", file=out)
    snapshots = plan["snapshots"]
    words = SNAPSHOTS if snapshots["is_possible"] else f"not possible: {snapshots['why_not']}"
    print(f"with recovery='snapshot': {words}", file=out)


def _guarantees(operator: dict[str, Any]) -> list[str]:
    lines = [f"reads {read['connection']}, {read['guarantee']}" for read in operator["reads"]]
    for write in operator["writes"]:
        assumed = f"; assumes that {write['assumes']}" if write["assumes"] else ""
        lines.append(f"writes {write['connection']} ({write['kind']}), {write['guarantee']}{assumed}")
    if operator["times"]:
        lines.append(f"its events have {operator['times']}")
    if operator["is_timely"]:
        lines.append("works by time: it is told which times may still arrive, and goes on with the same after a crash")
    if operator["sets_aside_what_always_fails"]:
        lines.append("an input that always fails goes to its port `dead`")
    if not operator["others_go_on_while_it_is_down"]:
        lines.append(f"runs in the driver: {IN_DRIVER}")
    return lines
