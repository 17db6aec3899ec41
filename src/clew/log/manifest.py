"""The manifest: which format a log has, its random id, and the pipeline that it belongs to.

A log is opened only if its manifest can be read, is not newer than this version, and names the same pipeline:
the same operators, replicas, ports and connections. What the operators compute is not compared.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from clew.errors import LogDamaged, LogOfAnotherPipeline, LogTooNew
from clew.log.contract import FORMAT


class Manifest(NamedTuple):
    """What a log says about itself."""

    format: int
    log_id: str
    description: Mapping[str, Any]

    @staticmethod
    def new(description: Mapping[str, Any]) -> Manifest:
        """The manifest of a log that is about to be made."""
        plain = json.loads(json.dumps(description))
        return Manifest(FORMAT, secrets.token_hex(8), plain)

    def to_json(self) -> str:
        """The manifest as text."""
        return json.dumps({"format": self.format, "log": self.log_id, "description": self.description}, indent=2) + "\n"

    @staticmethod
    def of_json(where: str, text: str) -> Manifest:
        """The manifest in this text; `where` is for the error."""
        try:
            data = json.loads(text)
        except ValueError as error:
            raise LogDamaged(
                f"{where} is not JSON ({error}); expected the manifest of a log: format, log and description. "
                f"Restore it from a copy, or name another place for the log."
            ) from None
        if not isinstance(data, dict):
            data = {}
        return Manifest.checked(where, data.get("format"), data.get("log"), data.get("description"))

    @staticmethod
    def checked(where: str, format: object, log_id: object, description: object) -> Manifest:
        """The manifest with these parts, if it is one that this version understands."""
        if isinstance(format, bool) or not isinstance(format, int) or format < 1:
            raise LogDamaged(
                f"{where} has the format {format!r}; expected a number from 1 to {FORMAT}. "
                f"Restore it from a copy, or name another place for the log."
            )
        check_format(where, format)
        if not isinstance(log_id, str) or not log_id or not isinstance(description, dict):
            raise LogDamaged(
                f"{where} has the log id {log_id!r} and a description of type {type(description).__name__}; expected "
                f"text and a JSON object. Restore it from a copy, or name another place for the log."
            )
        return Manifest(format, log_id, description)


def check_format(where: str, format: int) -> None:
    """Raises if the format is newer than this version of Clew."""
    if format > FORMAT:
        raise LogTooNew(
            f"{where} has format {format}; this version of Clew reads formats up to {FORMAT}. "
            f"Open it with the version that wrote it or a newer one."
        )


def check_same_pipeline(where: str, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raises if the log's pipeline differs from the expected one in names, ports or connections."""
    differences = list(_differences(_shape(found), _shape(expected)))
    if differences:
        shown = differences[:5]
        if len(differences) > len(shown):
            shown.append(f"and {len(differences) - len(shown)} more differences")
        raise LogOfAnotherPipeline(
            f"the log at {where} belongs to the pipeline {found.get('pipeline')!r}, which is not the pipeline "
            f"{expected.get('pipeline')!r} given: {'; '.join(shown)}. Run the pipeline that the log was made for, or "
            f"name another place for the log of this one."
        )


def _shape(description: Mapping[str, Any]) -> dict[str, Any]:
    """What is compared, as a flat map from a place in the pipeline to what is there."""
    shape: dict[str, Any] = {"the name of the pipeline": description.get("pipeline")}
    for name, operator in dict(description.get("operators", {})).items():
        for part, words in (
            ("inputs", "input ports"),
            ("outputs", "output ports"),
            ("reads", "read connections"),
            ("writes", "write connections"),
        ):
            shape[f"operator {name!r}, {words}"] = sorted(operator.get(part, ()))
        shape[f"operator {name!r}, replicas"] = operator.get("replicas", 1)
    for sender, output, receiver, port in description.get("connections", ()):
        shape[f"connection {sender}.{output} to {receiver}.{port}"] = "there"
    return shape


def _differences(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    return [
        f"{place}: {_words(found.get(place))} in the log, {_words(expected.get(place))} in the pipeline"
        for place in dict.fromkeys((*found, *expected))
        if found.get(place) != expected.get(place)
    ]


def _words(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case list():
            return ", ".join(map(str, value)) or "none"
    return str(value)
