"""The SQLite store: a directory with one file per replica, for pipelines on one machine.

sales.log/
    log.json            the manifest: format, the log's random id, the pipeline's graph
    hourly.0.db         one file per replica, written by that replica alone
    bodies/hourly.0/    large bodies, named by incarnation and number
"""

from __future__ import annotations

import os
import secrets
import threading
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clew.errors import LogDamaged, LogExists, LogNotFound
from clew.log.body_files import DEFAULT_THRESHOLD, BodyFiles, sync_directory
from clew.log.contract import ReplicaRows
from clew.log.manifest import Manifest, check_same_pipeline
from clew.log.numbers import Names
from clew.log.processes import Process
from clew.log.sql_reading import read_events, read_rows
from clew.log.sqlite_files import check_file, connect_to_read, damage_named, file_name, make_file, replica_of
from clew.log.sqlite_replica import SqliteReplicaLog, SqliteSession
from clew.log.standing import Standing, holder_of, read_standing
from clew.model.event import Event
from clew.model.names import Replica

_MANIFEST = "log.json"


def open_sqlite(
    path: str | Path, description: Mapping[str, Any] | None = None, *, threshold: int = DEFAULT_THRESHOLD
) -> SqliteStore:
    """The log at this place, made if it is not there and the pipeline's description is given."""
    if description is None:
        return SqliteStore.open_existing(path, threshold=threshold)
    if not (Path(path) / _MANIFEST).exists():
        try:
            return SqliteStore.create(path, description, threshold=threshold)
        except LogExists:
            if not (Path(path) / _MANIFEST).exists():
                raise
    return SqliteStore.open_existing(path, description, threshold=threshold)


class SqliteStore:
    """The logs of all replicas of one pipeline, in a directory."""

    def __init__(self, path: Path, manifest: Manifest, threshold: int) -> None:
        self.path = path
        self.log_id = manifest.log_id
        self.description = manifest.description
        self.threshold = threshold
        self._readers: list[SqliteReader] = []
        self._logs: weakref.WeakSet[SqliteReplicaLog] = weakref.WeakSet()

    @classmethod
    def create(
        cls, path: str | Path, description: Mapping[str, Any], *, threshold: int = DEFAULT_THRESHOLD
    ) -> SqliteStore:
        """Makes a new log in a directory that does not exist or is empty."""
        path = Path(path)
        manifest = Manifest.new(description)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise LogExists(
                f"{path} is a file; expected a directory that does not exist or is empty. Name another place."
            ) from None
        if found := sorted(name for name in os.listdir(path) if not name.startswith(f".{_MANIFEST}.")):
            raise LogExists(
                f"{path} holds {', '.join(found[:3])}{' ...' if len(found) > 3 else ''}; expected a directory that "
                f"does not exist or is empty. Open the log that is there, or name another place."
            )
        _write_manifest(path, manifest)
        return cls(path, manifest, threshold)

    @classmethod
    def open_existing(
        cls,
        path: str | Path,
        description: Mapping[str, Any] | None = None,
        *,
        threshold: int = DEFAULT_THRESHOLD,
    ) -> SqliteStore:
        """Opens a log that is there; of this pipeline, if a description is given. An error changes nothing on disk."""
        path = Path(path)
        manifest = _read_manifest(path)
        if description is not None:
            check_same_pipeline(str(path), manifest.description, description)
        for name in sorted(os.listdir(path)):
            replica = replica_of(name)
            if replica is not None:
                check_file(path / name, manifest.log_id, replica)
        return cls(path, manifest, threshold)

    def open(self, replica: Replica) -> SqliteReplicaLog:
        """The replica's log under the next incarnation, made if it is not there."""
        path = self.path / file_name(replica)
        if path.exists():
            check_file(path, self.log_id, replica)
        else:
            captures = replica.operator in self.description.get("capture", {})
            make_file(path, self.log_id, replica, captures_lineage=captures)
        log = SqliteReplicaLog(path, replica, _bodies(self.path, replica), self.threshold)
        self._logs.add(log)
        return log

    def reader(self) -> SqliteReader:
        """Reads all logs."""
        reader = SqliteReader(self.path)
        self._readers.append(reader)
        return reader

    def close(self) -> None:
        """Lets go of all logs and readers."""
        for log in list(self._logs):
            log.close()
        for reader in self._readers:
            reader.close()
        self._readers.clear()


class SqliteReader:
    """Reads the logs in a directory, of running and of finished pipelines, through connections that cannot write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open: dict[Replica, tuple[SqliteSession, Names]] = {}
        self._lock = threading.Lock()

    def replicas(self) -> list[Replica]:
        """The replicas that have a log."""
        found = (replica_of(name) for name in os.listdir(self.path))
        return sorted(replica for replica in found if replica is not None)

    def events(self, sender: Replica, port: str, ids: Iterable[int]) -> list[Event]:
        """These output events with their bodies; what is not there is left out."""
        if not (self.path / file_name(sender)).exists():
            return []
        session, names = self._session(sender)
        return read_events(session, names, sender, port, ids, BodyFiles(_bodies(self.path, sender), 0).read)

    def rows(self, replica: Replica) -> ReplicaRows:
        """All rows of one replica's log except bodies, as they are at one moment."""
        session, names = self._session(replica)
        with session.snapshot():
            rows = session.query("SELECT incarnation FROM owner")
            return read_rows(session, names, rows[0][0] if rows else 0)

    def standing(self, replica: Replica) -> Standing:
        """How the replica stands, and which process holds its log."""
        session, names = self._session(replica)
        with session.snapshot():
            rows = session.query("SELECT incarnation, pid, started, boot, namespace FROM owner")
            incarnation, *process = rows[0] if rows else (0, 0, 0, "", "")
            return read_standing(session, names, incarnation, holder_of(Process(*process)))

    def close(self) -> None:
        """Closes all connections."""
        with self._lock:
            for session, _ in self._open.values():
                session.close()
            self._open.clear()

    def _session(self, replica: Replica) -> tuple[SqliteSession, Names]:
        path = self.path / file_name(replica)
        with self._lock:
            if replica not in self._open:
                if not path.exists():
                    raise LogNotFound(
                        f"{self.path} holds no log of {replica}; there are logs of "
                        f"{', '.join(map(str, self.replicas())) or 'nobody'}. Ask for one of these."
                    )
                with damage_named(path):
                    self._open[replica] = (SqliteSession(path, connect_to_read(path)), Names())
            return self._open[replica]


def _bodies(path: Path, replica: Replica) -> Path:
    return path / "bodies" / f"{replica.operator}.{replica.index}"


def _write_manifest(path: Path, manifest: Manifest) -> None:
    """Puts the manifest in its place at once and whole, unless there is one."""
    draft = path / f".{_MANIFEST}.{secrets.token_hex(4)}"
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.write(manifest.to_json())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path / _MANIFEST)
        except FileExistsError:
            raise LogExists(
                f"{path} has just become a log by another process. Open that one, or name another place."
            ) from None
    finally:
        draft.unlink(missing_ok=True)
    sync_directory(path)
    sync_directory(path.absolute().parent)


def _read_manifest(path: Path) -> Manifest:
    place = path / _MANIFEST
    try:
        text = place.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        what = "does not exist" if not path.exists() else f"has no {_MANIFEST}"
        raise LogNotFound(
            f"there is no log at {path}: it {what}; expected the directory of a log. Look at the name, or run the "
            f"pipeline to make a log there."
        ) from None
    except UnicodeDecodeError:
        raise LogDamaged(
            f"{place} is not text; expected the manifest of a log as JSON. Restore it from a copy."
        ) from None
    return Manifest.of_json(str(place), text)
