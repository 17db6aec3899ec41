"""Compares Clew's propagation with real Timely Dataflow: builds and runs it, writes vector files, replays them.

`python -m tools.timely.compare` (or `make timely`). Needs cargo and, for the first build, crates.io; without them it
says so and ends well, unless `--require` is given. docs/timely-comparison.md tells how it works.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

from tools.timely import judge, vectors

from clew.verify.vectors import check_file

Json = dict[str, Any]

HERE = Path(__file__).parent
PROGRAM = HERE / "target" / "release" / "clew-timely"
OUT = HERE / "target" / "vectors"
RUN_TIMEOUT_S = 120
BUILD_TIMEOUT_S = 1800
CASES_PER_FILE = 400


class Skipped(Exception):
    """Timely cannot be had on this machine."""


def version() -> str:
    """The version of Timely that Cargo.lock fixes."""
    packages = tomllib.loads((HERE / "Cargo.lock").read_text())["package"]
    return next(str(package["version"]) for package in packages if package["name"] == "timely")


def build(jobs: int) -> None:
    cargo = shutil.which("cargo")
    if cargo is None:
        raise Skipped("cargo was not found; install a Rust toolchain (https://rustup.rs)")
    fetched = subprocess.run(
        [cargo, "fetch", "--locked"], cwd=HERE, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S
    )
    if fetched.returncode:
        raise Skipped(f"cargo could not fetch the crates of {HERE / 'Cargo.lock'}:\n{fetched.stderr.strip()}")
    command = [cargo, "build", "--release", "--locked", "--offline", "--quiet", f"-j{jobs}"]
    if subprocess.run(command, cwd=HERE, timeout=BUILD_TIMEOUT_S).returncode:
        raise SystemExit("timely: the build failed, see above; Timely needs Rust 1.86 or newer (`rustup update`)")


def records(*arguments: str | int) -> Iterator[Json]:
    """What one run of the Rust program wrote."""
    command = [str(PROGRAM), *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S)
    if ran.returncode:
        raise SystemExit(f"timely: {' '.join(command)} failed:\n{ran.stderr.strip()}")
    return map(json.loads, ran.stdout.splitlines())


def names() -> list[str]:
    listed = subprocess.run([str(PROGRAM), "list"], capture_output=True, text=True, check=True, timeout=RUN_TIMEOUT_S)
    return [line.split("\t")[0] for line in listed.stdout.splitlines()]


def runs(args: argparse.Namespace) -> Iterator[tuple[str, str, Iterable[Json]]]:
    """What to run: the kind, a name for its vector files, the records that belong into them."""
    yield "tracker", "trackers", records("trackers", 0, args.trackers)
    for name in names():
        seeds = args.generated if name == "generated" else args.seeds
        chosen = product(range(seeds), args.workers)
        yield "program", name, chain.from_iterable(records("programs", name, workers, seed) for seed, workers in chosen)


def tally(record: Json) -> Counter[str]:
    """How much a record compares."""
    rounds = len(record["rounds"])
    return Counter(
        cases=1,
        rounds=rounds,
        changes=sum(len(round_["changes"]) for round_ in record["rounds"]),
        frontiers=rounds * len(record["graph"]["locations"]),
        seen=len(record["observed"]),
    )


def write(path: Path, cases: list[Json]) -> None:
    path.write_text(json.dumps({"format": vectors.FORMAT, "propagation": cases}, separators=(",", ":")))


def deviation(path: Path) -> str | None:
    """Replays a vector file with Clew's kernels; the first difference in words, if there is one."""
    first = check_file(str(path)).first
    if first is None:
        return None
    number = int(first.case.removeprefix("propagation[").removesuffix("]"))
    name = json.loads(path.read_text())["propagation"][number]["name"]
    return f"{path}, {first.case} ({name}), {first.step}: Timely has {first.expected}, Clew has {first.came}"


def broken(cases: list[Json]) -> list[Json]:
    """A copy in which one frontier is one element short: the canary."""
    copy: list[Json] = json.loads(json.dumps(cases))
    for case in copy:
        for expected in case["expected"]:
            for frontier in expected["frontiers"].values():
                if frontier:
                    frontier.pop()
                    return copy
    raise SystemExit("timely: nothing was compared: ask for at least one graph or one program")


def compare(args: argparse.Namespace, out: Path) -> int:
    """Runs everything; 0 if nothing deviates."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.json"):
        old.unlink()
    totals: dict[str, Counter[str]] = {"tracker": Counter(), "program": Counter()}
    cases: list[Json] = []
    for kind, name, found in runs(args):
        ran: set[tuple[int, int]] = set()
        for number, part in enumerate(batched(found, CASES_PER_FILE)):
            path = out / (f"{name}-{number}.json" if number else f"{name}.json")
            cases = [vectors.case(record) for record in part]
            write(path, cases)
            faults = (f"{path}, {vectors.title(record)}, {fault}" for record in part for fault in judge.faults(record))
            fault = next(faults, None) or deviation(path)
            if fault is not None:
                print(f"timely: DEVIATION in {fault}")
                return 1
            for record in part:
                totals[kind] += tally(record)
                ran.add((record["workers"], record["seed"]))
        if kind == "program" and ran:
            totals[kind] += Counter(programs=1, runs=len(ran))
    canary = out / "canary.json"
    write(canary, broken(cases))
    caught = deviation(canary)
    canary.unlink()
    if caught is None:
        print("timely: a frontier that was changed on purpose was not noticed: the comparison compares nothing")
        return 1
    print(f"timely {version()}: no deviation; a frontier that was changed on purpose was noticed")
    for kind, total in totals.items():
        print(f"  {kind:8}", ", ".join(f"{value:,} {what}" for what, value in sorted(total.items()) if value))
    print(f"  the vector files are in {out}; `clew check FILE...` replays them")
    return 0


def batched(items: Iterable[Json], size: int) -> Iterator[list[Json]]:
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.timely.compare", description=__doc__.splitlines()[0])
    parser.add_argument("--require", action="store_true", help="fail where Timely cannot be built, instead of skipping")
    parser.add_argument("--trackers", type=int, default=2000, metavar="N", help="random graphs (default: 2000)")
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="seeds of each program (default: 2)")
    parser.add_argument("--generated", type=int, default=40, metavar="N", help="random programs (default: 40)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="worker threads (default: 1 2 4)")
    parser.add_argument("--jobs", type=int, default=2, help="processes of the build (default: 2)")
    args = parser.parse_args(arguments)
    try:
        build(args.jobs)
    except Skipped as reason:
        print(f"timely: {'cannot run' if args.require else 'skipped'}: {reason}")
        return 1 if args.require else 0
    return compare(args, Path(os.path.relpath(OUT)))


if __name__ == "__main__":
    sys.exit(main())
