"""The data of the four workloads: sales-like records in files, and a live emitter that is a process of its own.

As a program it is the emitter: `python bench/workload_data.py DIRECTORY --count 2000 --interval 0.01` appends JSON
lines to `log.jsonl` in the directory, each with its number, the moment at which it was written, and a payload.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COUNT, FILES = 200_000, 20
MINUTE_MS = 60_000
BEGIN_MS = 1_700_000_000_000 // MINUTE_MS * MINUTE_MS


def records() -> Iterator[dict[str, Any]]:
    """Keys, amounts and event times; a record comes at most half a second out of order."""
    chance = random.Random(7)
    for number in range(COUNT):
        key = chance.randrange(1000)
        amount = round(chance.uniform(0, 100), 2)
        yield {"id": number, "key": key, "amount": amount, "ts": BEGIN_MS + number * 3 + chance.randrange(500)}


def write_files(directory: Path) -> None:
    """All records as JSON lines in equally long files."""
    directory.mkdir(parents=True, exist_ok=True)
    everything = list(records())
    share = COUNT // FILES
    for number in range(FILES):
        lines = (json.dumps(record) + "\n" for record in everything[number * share : (number + 1) * share])
        (directory / f"part-{number:02d}.jsonl").write_text("".join(lines))


def expected_sums() -> dict[tuple[int, int], float]:
    """The right answer of workload 1, by key and beginning of the minute."""
    sums: dict[tuple[int, int], float] = {}
    for record in records():
        if record["id"] % 10 != 3:
            place = record["key"], record["ts"] // MINUTE_MS * MINUTE_MS
            sums[place] = sums.get(place, 0.0) + record["amount"] * 1.1
    return sums


def start_emitter(directory: Path, count: int, interval: float, payload: int = 0) -> subprocess.Popen[bytes]:
    """The emitter as a process of its own, which outlives any worker."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "log.jsonl").touch()
    program = [sys.executable, __file__, str(directory), "--count", str(count)]
    return subprocess.Popen([*program, "--interval", str(interval), "--payload", str(payload)])


def emit(directory: Path, count: int, interval: float, payload: int) -> None:
    """Appends an event every so often, each when it is due."""
    begin = time.time()
    filling = "x" * payload
    with (directory / "log.jsonl").open("a", buffering=1) as file:
        for number in range(count):
            time.sleep(max(0.0, begin + number * interval - time.time()))
            file.write(json.dumps({"id": number, "t": time.time(), "p": filling}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--interval", type=float, default=0.01)
    parser.add_argument("--payload", type=int, default=0)
    args = parser.parse_args()
    emit(args.directory, args.count, args.interval, args.payload)


if __name__ == "__main__":
    main()
