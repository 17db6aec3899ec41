"""`python -m tests.simulation.canaries [NAME [SCHEDULE]]`: lists the canaries, or shows the trace in which one dies."""

from __future__ import annotations

import sys

from tests.simulation.canaries import CANARIES, Canary, Hunt
from tests.simulation.canaries.hunt import STEPS_MAX

from clew.verify.schedule import Schedule
from clew.verify.simulator import simulate


def show(canary: Canary, schedule: Schedule | None) -> int:
    """Prints the trace under a schedule, or under the simplest one that a hunt finds."""
    if schedule is None:
        catch = Hunt(canary.habitat.graph, canary.parts).catch(canary.expected)
        if catch is None:
            print(f"{canary.name}: nothing sees it")
            return 1
        schedule = catch.shrunk.schedule
    report = simulate(canary.habitat.graph, schedule, parts=canary.parts, is_tracing=True, steps_max=STEPS_MAX)
    for line in report.trace:
        print(line)
    print(f"\n{canary.name}\n  {canary.part.__doc__}\n  {schedule}: {report.violation or 'every guarantee held'}")
    return 0


def main(arguments: list[str]) -> int:
    """Runs the command."""
    if not arguments:
        for canary in CANARIES.values():
            print(f"{canary.name}: {(canary.part.__doc__ or '').splitlines()[0]}")
        return 0
    if arguments[0] not in CANARIES:
        print(f"there is no canary {arguments[0]!r}; without a name this command lists them", file=sys.stderr)
        return 2
    return show(CANARIES[arguments[0]], Schedule.parse(arguments[1]) if len(arguments) > 1 else None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
