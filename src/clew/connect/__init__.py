"""Connectors: read and write actions on files, databases, Spark DataFrames and Python functions."""

from clew.connect.file_source import files
from clew.connect.file_writer import csv, jsonl, parquet
from clew.connect.functions import call, from_callable, generator
from clew.connect.pace import rate
from clew.connect.postgres_reader import postgres_lookup, postgres_query
from clew.connect.postgres_writer import postgres
from clew.connect.spark_frames import dataframe
from clew.connect.spark_streams import read_stream
from clew.connect.spark_writer import frame_writer
from clew.connect.sqlite_writer import sqlite

__all__ = [
    "call",
    "csv",
    "dataframe",
    "files",
    "frame_writer",
    "from_callable",
    "generator",
    "jsonl",
    "parquet",
    "postgres",
    "postgres_lookup",
    "postgres_query",
    "rate",
    "read_stream",
    "sqlite",
]
