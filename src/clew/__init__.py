"""Clew runs stateful Python pipelines that find their way back from any crash exactly."""

from clew.connect import (
    call,
    csv,
    dataframe,
    files,
    frame_writer,
    from_callable,
    generator,
    jsonl,
    parquet,
    postgres,
    postgres_lookup,
    postgres_query,
    rate,
    read_stream,
    sqlite,
)
from clew.errors import BuildError, ClewError, LogError, MoveError, Violation
from clew.model.connection import Kind, ReadConnection, WriteAction, WriteConnection
from clew.model.event import Event
from clew.model.operator import Assigned, Context, Operator
from clew.model.source import Source
from clew.model.stamps import Stamped, Stamps, event_time, numbered
from clew.operators.windows import session, sliding, tumbling
from clew.pipeline import Pipeline, Stream

__version__ = "0.1.0.dev0"

__all__ = [
    "Assigned",
    "BuildError",
    "ClewError",
    "Context",
    "Event",
    "Kind",
    "LogError",
    "MoveError",
    "Operator",
    "Pipeline",
    "ReadConnection",
    "Source",
    "Stamped",
    "Stamps",
    "Stream",
    "Violation",
    "WriteAction",
    "WriteConnection",
    "__version__",
    "call",
    "csv",
    "dataframe",
    "event_time",
    "files",
    "frame_writer",
    "from_callable",
    "generator",
    "jsonl",
    "numbered",
    "parquet",
    "postgres",
    "postgres_lookup",
    "postgres_query",
    "rate",
    "read_stream",
    "session",
    "sliding",
    "sqlite",
    "tumbling",
]
