"""The tracer: writes what a replica does beside its log, one record for each commit, before the commit is applied.

So the trace of a process that was killed holds every commit that its log holds, and perhaps one more. Nothing is
forced to the disk: what the machine forgets when it loses its power, the explanation says is missing.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack

from clew.model.history import Recovered, Transaction
from clew.trace import framing
from clew.trace.framing import MAGIC, encode, frame
from clew.trace.packing import Packer
from clew.trace.records import LOG, Completed, End, Head, Names, Stored, Wrote
from clew.trace.segment import Segment

SEGMENT_BYTES = 8 << 20
KEEP_BYTES = 512 << 20
SUFFIX = ".trace"
FOLDER = "trace"
"""The folder of the trace in that of the log."""


class Tracer:
    """Writes the trace of one replica; a trace that cannot be written ends, and says why in `error`."""

    def __init__(
        self,
        directory: str | Path,
        names: Names,
        mode: str = LOG,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        keep_bytes: int = KEEP_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = Path(directory) / folder_name(names)
        self.names = names
        self.mode = mode
        self.error: str | None = None
        self.why = ""
        """Why the incarnation ends, if it fails in a way that it can tell."""
        self._segment_bytes = segment_bytes
        self._keep_bytes = keep_bytes
        self._clock = clock
        self._packer = Packer(names)
        self._pack = msgpack.Packer(autoreset=True).pack
        self._writes = {name: place for place, name in enumerate(names.writes)}
        self._wrote: deque[tuple[int, int]] = deque()
        """What writers have done, from their own threads, until the next record takes it along."""
        self._lock = threading.Lock()
        self._segment: Segment | None = None
        self._head: Head | None = None

    # What is traced

    def start(self, recovered: Recovered, epoch: int = 0) -> None:
        """An incarnation begins, from what its log holds; of a generation: from this epoch."""
        counters, cursors = recovered.counters, recovered.cursors
        names = self.names
        found = [cursors.get(channel) for channel in names.channels]
        is_closed = bool(counters.get("finished") or counters.get("drained"))
        with self._lock:
            self._head = Head(
                names,
                self.mode,
                recovered.incarnation,
                epoch,
                0 if self.mode == LOG else counters.get("epoch", 0) + 1,
                counters.get("position", 0),
                tuple(0 if each is None else each.assigned for each in found),
                tuple(0 if each is None else int(each.ended) for each in found),
                tuple(counters.get(f"out:{name}", 0) for name in names.outs),
                tuple(int(is_closed) for _ in names.ports),
                tuple(counters.get(f"written:{name}", 0) for name in names.writes),
                len(recovered.undone),
                bool(counters.get("finished")),
                os.getpid(),
                self._clock(),
                True,
            )
            self._epoch = self._head.epoch
            self._position = self._head.position
            self._taken, self._ended = list(self._head.taken), list(self._head.ended)
            self._made, self._closed = list(self._head.made), list(self._head.closed)
            self._written = list(self._head.written)
            self._wrote.clear()
            if self._segment is None:
                self._open(self._head)
            else:
                self._put(encode(self._head))

    def steps(self, number: int, transaction: Transaction) -> None:
        """A commit is about to be applied."""
        if self._segment is None:
            return
        with self._lock:
            parts = self._packer.pack(transaction, self._epoch)
            if not parts and not self._wrote:
                return
            wrote = self._taken_along()
            self._position = position = transaction.counters.get("position", self._position)
            fields = (framing.STEPS, self._clock(), number, position, wrote, parts)
            for part in parts:
                self._follow(part)
            self._put(frame(self._pack(fields)))

    def wrote(self, connection: str, number: int) -> None:
        """A write action was seen to be done outside; told before the kernel hears of it, from any thread."""
        self._wrote.append((self._writes[connection], number))

    def stored(self, epoch: int, is_final: bool = False) -> None:
        """The snapshot of an epoch is durable; told before the coordinator hears of it."""
        self._say(Stored(self._clock(), epoch, is_final))

    def completed(self, epoch: int) -> None:
        """An epoch is complete everywhere; told before the kernel hears of it."""
        self._say(Completed(self._clock(), epoch))

    def close(self, is_complete: bool) -> None:
        """The incarnation ends in order."""
        self._say(End(self._clock(), is_complete, self.why))
        with self._lock:
            self._close()

    # Segments

    def _say(self, record: Stored | Completed | End) -> None:
        if self._segment is None:
            return
        with self._lock:
            if self._wrote:
                self._put(encode(Wrote(self._clock(), tuple(self._taken_along()))))
            self._put(encode(record))

    def _taken_along(self) -> list[int]:
        wrote: list[int] = []
        while self._wrote:
            place, number = self._wrote.popleft()
            wrote += (place, number)
            self._written[place] = number
        return wrote

    def _follow(self, part: list[Any]) -> None:
        """Remembers where the replica is, for the head of the next segment."""
        _, took, made, _, ended, held, closed, is_border, borders = part
        for runs, numbers in ((took, self._taken), (made, self._made)):
            if len(runs) == 3:  # As most are.
                numbers[runs[0]] = runs[2]
            elif runs:
                for place, last in zip(runs[::3], runs[2::3], strict=True):
                    numbers[place] = last
        if ended or held or closed or is_border:
            for places, numbers in (
                (held, self._taken),
                (ended, self._taken),
                (borders, self._made),
                (closed, self._made),
            ):
                for place, number in zip(places[::2], places[1::2], strict=True):
                    numbers[place] = number
            for place in ended[::2]:
                self._ended[place] = 1
            for place in closed[::2]:
                self._closed[place] = 1
            self._epoch += is_border

    def _put(self, data: bytes) -> None:
        if self._segment is None:
            return
        try:
            self._segment.write(data)
            if self._segment.size >= self._segment_bytes:
                self._rotate()
        except OSError as error:
            self._give_up(error)

    def _rotate(self) -> None:
        assert self._head is not None
        head = self._head._replace(
            epoch=self._epoch,
            position=self._position,
            taken=tuple(self._taken),
            ended=tuple(self._ended),
            made=tuple(self._made),
            closed=tuple(self._closed),
            written=tuple(self._written),
            time=self._clock(),
            is_start=False,
        )
        self._close()
        self._open(head)

    def _open(self, head: Head) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            segments = segments_of(self.folder)
            number = int(segments[-1].stem) + 1 if segments else 1
            while self._segment is None:
                path = self.folder / f"{number:06}{SUFFIX}"
                with contextlib.suppress(FileExistsError):  # A predecessor may still be writing.
                    self._segment = Segment(path)
                number += 1
            self._segment.write(MAGIC + encode(head))
            self._remove_old(segments)
        except OSError as error:
            self._give_up(error)

    def _remove_old(self, segments: list[Path]) -> None:
        kept = self._segment_bytes
        for path in reversed(segments):
            kept += path.stat().st_size  # At most a step larger than what was written.
            if kept > self._keep_bytes:
                path.unlink(missing_ok=True)

    def _give_up(self, error: OSError) -> None:
        """The run is worth more than its trace."""
        self.error = f"the trace in {self.folder} cannot be written: {error}"
        self._close()

    def _close(self) -> None:
        if self._segment is not None:
            with contextlib.suppress(OSError):
                self._segment.close()
            self._segment = None


def folder_name(names: Names) -> str:
    """The folder of a replica's trace.

    >>> from clew.model.names import Replica
    >>> folder_name(Names(Replica("hourly", 2), (), (), ()))
    'hourly-2'
    """
    return f"{names.replica.operator}-{names.replica.index}"


def segments_of(folder: Path) -> list[Path]:
    """The files of a replica's trace, oldest first."""
    return sorted((path for path in folder.glob(f"*{SUFFIX}") if path.stem.isdigit()), key=lambda path: int(path.stem))
