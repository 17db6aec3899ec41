"""The reader: a trace as the lives of its replicas."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from clew.errors import LogNotFound
from clew.model.names import Replica
from clew.trace.aligning import aligned
from clew.trace.framing import MAGIC, TraceDamaged, decode_all
from clew.trace.life import Life
from clew.trace.records import Head, Names
from clew.trace.writer import FOLDER, segments_of


@dataclass(slots=True)
class Trace:
    """What a run, or several runs on one log, have written."""

    mode: str
    lives: dict[Replica, list[Life]]
    """By replica, in the order of the incarnations."""
    size_bytes: int = 0

    def names(self, replica: Replica) -> Names:
        """The connections of a replica."""
        return self.lives[replica][-1].head.names


class TraceNotFound(LogNotFound):
    """There is no trace where one is looked for."""


def trace_folder(place: str | Path) -> Path:
    """The folder of a trace, given itself or that of its log."""
    path = Path(place)
    for each in (path / FOLDER, path):
        if any(segments_of(folder) for folder in _folders(each)):
            return each
    raise TraceNotFound(
        f"{path} holds no trace; expected the directory of a log, with a folder {FOLDER!r} in it, or such a folder. A "
        f"run writes one unless it was started with trace=False (clew run --no-trace) or without a log."
    )


def read_trace(place: str | Path) -> Trace:
    """Reads a whole trace. Of a run that is under way, receivers are read before their senders.

    So whatever a receiver is seen to have taken, its sender is seen to have made.
    """
    root = trace_folder(place)
    folders = [folder for folder in _folders(root) if segments_of(folder)]
    heads: dict[Path, Head] = {}
    for folder in folders:
        head = _first_head(folder)
        if head is not None:
            heads[folder] = head
    if not heads:
        raise TraceNotFound(f"{root} holds files of a trace, but none with a record in it; nothing has run yet.")
    lives: dict[Replica, list[Life]] = {}
    size = 0
    for folder in _receivers_first(heads):
        found, read = _read_lives(folder)
        lives[heads[folder].names.replica] = found
        size += read
    modes = {life.head.mode for each in lives.values() for life in each}
    if len(modes) > 1:
        raise TraceDamaged(
            f"{root} holds records of the modes {' and '.join(sorted(modes))}; expected one. A log is run in one mode; "
            f"take away the folder that does not belong here."
        )
    return Trace(modes.pop(), dict(sorted(lives.items())), size)


def _folders(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def _first_head(folder: Path) -> Head | None:
    for path in segments_of(folder):
        with contextlib.suppress(StopIteration, FileNotFoundError), path.open("rb") as file:
            record = next(decode_all(file.read(1 << 20), len(MAGIC), str(path)))
            if isinstance(record, Head):
                return record
    return None


def _receivers_first(heads: dict[Path, Head]) -> list[Path]:
    """Folders in an order in which a receiver comes before its senders, as far as there is one."""
    by_replica = {head.names.replica: folder for folder, head in heads.items()}
    done: dict[Path, None] = {}
    receivers: dict[Replica, list[Replica]] = {}
    for head in heads.values():
        for channel in head.names.channels:
            receivers.setdefault(channel.sender, []).append(head.names.replica)
    waiting: set[Replica] = set()
    stack = [(replica, False) for replica in by_replica]
    while stack:
        replica, is_after = stack.pop()
        if is_after:
            done[by_replica[replica]] = None
        elif replica not in waiting and replica in by_replica:
            waiting.add(replica)
            stack.append((replica, True))
            stack += [(each, False) for each in receivers.get(replica, ()) if each not in waiting]
    return list(done)


def _read_lives(folder: Path) -> tuple[list[Life], int]:
    lives: dict[int, Life] = {}
    size = 0
    for path in segments_of(folder):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue  # The oldest ones are removed while a run is under way.
        size += len(data)
        if data[: len(MAGIC)] != MAGIC[: len(data)]:
            raise TraceDamaged(f"{path} is no file of a trace; expected it to begin with {MAGIC!r}. Take it away.")
        life: Life | None = None
        for record in decode_all(data, len(MAGIC), str(path)):
            if isinstance(record, Head):
                life = lives.setdefault(record.incarnation, Life(record))
            elif life is None:
                raise TraceDamaged(f"{path} does not begin with a head. Take it and all that are older away.")
            else:
                life.told.append(record)
    return aligned([lives[number] for number in sorted(lives)]), size
