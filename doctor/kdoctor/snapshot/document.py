"""A machine on record: the facts of one run as JSON, to be judged again anywhere.

The command line imports this module only when a snapshot is read or written, because pydantic takes its time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, NoReturn

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from kdoctor import __version__
from kdoctor.errors import UsageError
from kdoctor.facts import FactGroup, Unavailable
from kdoctor.snapshot.redaction import Redaction

SCHEMA = "kdoctor/snapshot/v1"
_FAMILY, _, _VERSION = SCHEMA.rpartition("/v")

Groups = Mapping[str, type[FactGroup]]
"""A group's key in a snapshot to its type."""


class SnapshotError(UsageError):
    """A snapshot cannot be read. The message is for the user."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The facts of one machine at one time."""

    created_at: str
    """UTC, ISO 8601."""
    kdoctor: str
    """The version of kdoctor that collected it."""
    facts: Mapping[type[FactGroup], FactGroup | Unavailable]
    """A group that is not here was never collected."""
    notes: tuple[str, ...] = ()
    """What was left out when it was read."""

    @classmethod
    def now(cls, facts: Mapping[type[FactGroup], FactGroup | Unavailable]) -> Snapshot:
        """These facts, as of this moment."""
        created_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return cls(created_at=created_at, kdoctor=__version__, facts=facts)


def registry(groups: Iterable[type[FactGroup]]) -> dict[str, type[FactGroup]]:
    """The groups by their keys."""
    return {kind.group: kind for kind in groups}


def dumps(snapshot: Snapshot, redaction: Redaction | None = None) -> str:
    """The snapshot as JSON text with a final line feed, without the user's traces and without secrets.

    Args:
        snapshot: what to write.
        redaction: whose traces to remove; those of the user who runs kdoctor, unless given.

    Raises:
        ValueError: a fact holds a NaN or an infinity, which JSON does not know.
    """
    redaction = redaction or Redaction.of_this_user()
    facts = {kind.group: _dump(kind, value) for kind, value in snapshot.facts.items()}
    document = {
        "schema": SCHEMA,
        "kdoctor": snapshot.kdoctor,
        "created_at": snapshot.created_at,
        "facts": {name: redaction.apply(facts[name]) for name in sorted(facts)},
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _dump(kind: type[FactGroup], value: FactGroup | Unavailable) -> object:
    adapter: TypeAdapter[Any] = TypeAdapter(Unavailable if isinstance(value, Unavailable) else kind)
    return adapter.dump_python(value, mode="json")


def load(path: Path, groups: Groups) -> Snapshot:
    """Read a snapshot from a file.

    Raises:
        SnapshotError: the file cannot be read, or is no snapshot.
    """
    try:
        data = path.read_bytes()
    except IsADirectoryError as error:
        raise SnapshotError(f"{path}: a folder, not a snapshot") from error
    except OSError as error:
        raise SnapshotError(f"{path}: {error.strerror or error}") from error
    try:
        return loads(data, groups)
    except SnapshotError as error:
        raise SnapshotError(f"{path}: {error}") from error


def loads(data: str | bytes, groups: Groups) -> Snapshot:
    """Read a snapshot from JSON. Unknown fields are ignored; unknown groups are left out, with a note.

    Raises:
        SnapshotError: it is no snapshot, is of a newer schema, or holds a value of the wrong type.
    """
    document = _parse(data)
    _check_schema(document)
    facts: dict[type[FactGroup], FactGroup | Unavailable] = {}
    notes: list[str] = []
    for name, value in _member(document, "facts", dict).items():
        kind = groups.get(name)
        if kind is None:
            notes.append(f"facts.{name} was left out: no installed kdoctor or plug-in knows this group")
        else:
            facts[kind] = _load(kind, name, value)
    return Snapshot(
        created_at=_member(document, "created_at", str),
        kdoctor=_member(document, "kdoctor", str),
        facts=facts,
        notes=tuple(notes),
    )


def _parse(data: str | bytes) -> dict[str, Any]:
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SnapshotError(f"not UTF-8: byte {error.start} cannot be read, so it is no snapshot") from error
    if not text.strip():
        raise SnapshotError("empty, so it is no snapshot")
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        truncated = " (it ends too early)" if error.pos >= len(text.rstrip()) or "Unterminated" in error.msg else ""
        raise SnapshotError(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}{truncated}") from error
    except RecursionError as error:
        raise SnapshotError("not a snapshot: it is nested too deeply") from error
    if not isinstance(document, dict):
        raise SnapshotError(f"not a snapshot: the document is {_kind(document)}, not an object")
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise SnapshotError(f"not JSON: it holds {name}")


def _check_schema(document: Mapping[str, object]) -> None:
    schema = document.get("schema")
    family, slash, version = schema.rpartition("/v") if isinstance(schema, str) else ("", "", "")
    if not slash or family != _FAMILY or not version.isdigit():
        says = f"its schema is {schema!r}" if schema is not None else "it has no schema"
        raise SnapshotError(f"not a snapshot of kdoctor: {says}, not {SCHEMA!r}")
    if int(version) > int(_VERSION):
        raise SnapshotError(
            f"written by a newer kdoctor (schema {schema}, this one reads {SCHEMA}): upgrade keras-doctor"
        )


def _member(document: Mapping[str, object], name: str, kind: type[Any]) -> Any:
    if name not in document:
        raise SnapshotError(f"{name} is missing")
    value = document[name]
    if not isinstance(value, kind):
        raise SnapshotError(f"{name} is {_kind(value)}, not {'an object' if kind is dict else 'a text'}")
    return value


def _load(kind: type[FactGroup], name: str, value: object) -> FactGroup | Unavailable:
    is_unavailable = isinstance(value, dict) and set(value) == {"unavailable"}
    wanted: Any = Unavailable if is_unavailable else kind
    adapter: TypeAdapter[FactGroup | Unavailable] = TypeAdapter(wanted)
    try:
        facts: FactGroup | Unavailable = adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        first, *others = error.errors(include_url=False)
        more = f" (and {len(others)} more)" if others else ""
        raise SnapshotError(f"{_place(name, first)}: {first['msg']}, not {_kind(first['input'])}{more}") from error
    return facts


def _place(name: str, error: ErrorDetails) -> str:
    """Where in the document: ``facts.gpus.devices[0].name``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"])
    return f"facts.{name}{''.join(parts)}"


def _kind(value: object) -> str:
    """The value's type in JSON's words."""
    names = {dict: "an object", list: "an array", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def json_schema(groups: Groups) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a snapshot with these groups."""
    kinds: dict[str, type[Any]] = {**groups, "unavailable": Unavailable}
    inputs: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = [
        (name, "serialization", TypeAdapter(kind)) for name, kind in sorted(kinds.items())
    ]
    references, definitions = TypeAdapter.json_schemas(inputs)
    unavailable = references["unavailable", "serialization"]
    properties = {name: {"anyOf": [references[name, "serialization"], unavailable]} for name in sorted(groups)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kdoctor snapshot",
        "type": "object",
        "required": ["schema", "kdoctor", "created_at", "facts"],
        "properties": {
            "schema": {"const": SCHEMA},
            "kdoctor": {"type": "string", "description": "The version of kdoctor that collected it."},
            "created_at": {"type": "string", "format": "date-time", "description": "UTC, ISO 8601."},
            "facts": {"type": "object", "properties": properties},
        },
        **definitions,
    }
