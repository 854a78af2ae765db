"""A recorded machine: the facts of one run as JSON, which can be judged again anywhere."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from kdoctor.documents import Document, adapter_of
from kdoctor.errors import UsageError, about_missing_file
from kdoctor.facts import FactGroup, Facts, Unavailable
from kdoctor.facts.plausible import plausible
from kdoctor.inputs import read_bounded
from kdoctor.records import record
from kdoctor.snapshot.redaction import Redaction
from kdoctor.text.instants import parse_instant, problem_of
from kdoctor.text.kinds import describe_kind
from kdoctor.text.sanitize import clean_json
from kdoctor.version import __version__

SCHEMA: Final = "kdoctor/snapshot/v1"
_FAMILY, _, _VERSION = SCHEMA.rpartition("/v")

Groups = Mapping[str, type[FactGroup]]
"""A group's key in a snapshot to its type."""


class SnapshotError(UsageError):
    """A snapshot cannot be read."""


@record
class Snapshot:
    """The facts of one machine at one time."""

    created_at: str
    """UTC, ISO 8601."""
    kdoctor: str
    """The version of kdoctor that collected it."""
    facts: Facts
    """A group that was never collected is absent."""
    notes: tuple[str, ...] = ()
    """What was ignored while reading."""

    @classmethod
    def now(cls, facts: Facts) -> Snapshot:
        """A snapshot of these facts, created now."""
        created_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return cls(created_at=created_at, kdoctor=__version__, facts=facts)


def _time(text: str) -> str:
    if not parse_instant(text):
        raise ValueError("it is not a time in ISO 8601 with its time zone")
    return text


class SnapshotDocument(Document):
    """A snapshot as JSON. The types of the facts depend on the installed groups; each group is a dataclass."""

    schema_: Annotated[Literal["kdoctor/snapshot/v1"], Field(alias="schema")]
    kdoctor: Annotated[str, Field(description="The version of kdoctor that collected it.")]
    created_at: Annotated[
        str, Field(description="UTC, ISO 8601.", json_schema_extra={"format": "date-time"}), AfterValidator(_time)
    ]
    facts: dict[str, Any]


def dumps(snapshot: Snapshot, redaction: Redaction | None = None) -> str:
    """The snapshot as JSON text with a final line feed, without user names, home folders and secrets.

    Args:
        snapshot: what to write.
        redaction: the user to redact; the current user if omitted.

    Raises:
        ValueError: a fact holds a NaN or an infinity, which JSON does not have.
    """
    redaction = redaction or Redaction.of_this_user()
    facts = {
        kind.group: _adapter(kind, value).dump_python(
            value, mode="json", exclude_defaults=isinstance(value, Unavailable)
        )
        for kind, value in snapshot.facts.items()
    }
    document = SnapshotDocument(
        schema_=SCHEMA,
        kdoctor=snapshot.kdoctor,
        created_at=snapshot.created_at,
        facts={name: redaction.apply(facts[name]) for name in sorted(facts)},
    )
    text = json.dumps(document.model_dump(by_alias=True), indent=2, ensure_ascii=False, allow_nan=False)
    return clean_json(text) + "\n"


def load(path: Path, groups: Groups) -> Snapshot:
    """Read a snapshot from a file.

    Raises:
        SnapshotError: the file cannot be read, or is not a snapshot.
    """
    try:
        return loads(read_bounded(path), groups)
    except IsADirectoryError as error:
        raise SnapshotError(f"{path}: is a directory, not a snapshot") from error
    except FileNotFoundError as error:
        raise SnapshotError(f"{path}: no such file{about_missing_file(path)}") from error
    except OSError as error:
        raise SnapshotError(f"{path}: {error.strerror or error}") from error
    except SnapshotError as error:
        raise SnapshotError(f"{path}: {error}") from error


def loads(data: str | bytes, groups: Groups) -> Snapshot:
    """Read a snapshot from JSON. Unknown fields are ignored; unknown groups are ignored with a note.

    Raises:
        SnapshotError: it is not a snapshot, has a newer schema, or holds a value of the wrong type.
    """
    parsed = _parse(data)
    _check_schema(parsed.get("schema"))
    document: SnapshotDocument = _validate(adapter_of(SnapshotDocument), parsed)
    facts: dict[type[FactGroup], FactGroup | Unavailable] = {}
    notes = [*filter(None, [problem_of(document.created_at)])]
    for name, value in document.facts.items():
        if name not in groups:
            notes.append(f"facts.{name} was ignored: no installed kdoctor or plug-in defines this group")
            continue
        facts[groups[name]] = plausible(_validate(_adapter(groups[name], value), value, f"facts.{name}"))
    return Snapshot(created_at=document.created_at, kdoctor=document.kdoctor, facts=facts, notes=tuple(notes))


def _adapter(kind: type[FactGroup], value: object) -> TypeAdapter[Any]:
    """What validates and writes a group, or the reason why it is unavailable."""
    is_unavailable = isinstance(value, Unavailable) or (isinstance(value, dict) and "unavailable" in value)
    return adapter_of(Unavailable if is_unavailable else kind)


def _parse(data: str | bytes) -> dict[str, Any]:
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SnapshotError(f"not a snapshot: invalid UTF-8 at byte {error.start}") from error
    if not text.strip():
        raise SnapshotError("not a snapshot: the file is empty")
    try:
        document = json.loads(text, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        truncated = " (the file is truncated)" if error.pos >= len(text.rstrip()) or "Unterminated" in error.msg else ""
        raise SnapshotError(
            f"invalid JSON: {error.msg} at line {error.lineno}, column {error.colno}{truncated}"
        ) from error
    except RecursionError as error:
        raise SnapshotError("not a snapshot: the JSON is nested too deeply") from error
    except ValueError as error:  # Python reads no integer of thousands of digits
        raise SnapshotError("invalid JSON: a number of too many digits") from error
    if not isinstance(document, dict):
        raise SnapshotError(f"not a snapshot: expected a mapping, found {describe_kind(document)}")
    return document


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise SnapshotError(f"invalid JSON: duplicate key {twice!r}")
    return found


def _check_schema(schema: object) -> None:
    family, slash, version = schema.rpartition("/v") if isinstance(schema, str) else ("", "", "")
    if not slash or family != _FAMILY or not re.fullmatch("[0-9]{1,9}", version):
        found = "found no schema" if schema is None else f"found {schema!r}"
        is_report = family == "kdoctor/report"
        hint = "A report has no facts. To record them: kdoctor check --save-snapshot FILE" if is_report else None
        raise SnapshotError(f"not a kdoctor snapshot: expected schema {SCHEMA!r}, {found}", hint=hint)
    if int(version) > int(_VERSION):
        raise SnapshotError(f"schema {schema} is newer than {SCHEMA}, which this kdoctor reads: upgrade keras-doctor")


def _validate(adapter: TypeAdapter[Any], value: object, place: str = "") -> Any:
    """The value as its type.

    Raises:
        SnapshotError: it has the wrong type, with the place, what was expected and what was found.
    """
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError as error:  # NaN, an infinity, or a number that is too large for a float
        raise SnapshotError(f"{place or 'not a snapshot'}: {error}") from error
    try:
        return adapter.validate_json(text, strict=True)
    except ValidationError as error:
        first, *others = error.errors(include_url=False)
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        where = f"{place}{''.join(parts)}".removeprefix(".")
        more = f" (and {len(others)} more)" if others else ""
        if first["type"] == "json_invalid":  # at another place than in the user's file, which was written otherwise
            reason = str(first.get("ctx", {}).get("error", first["msg"])).partition(" at line ")[0]
            raise SnapshotError(f"{where or 'not a snapshot'}: {reason}") from error
        if first["type"] == "missing":
            raise SnapshotError(f"missing key {where}{more}") from error
        message = first["msg"].removeprefix("Value error, ")
        raise SnapshotError(f"{where}: {message}, found {describe_kind(first['input'])}{more}") from error


def json_schema(groups: Groups) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a snapshot with these groups."""
    kinds: dict[str, type[Any]] = {**groups, "unavailable": Unavailable}
    inputs: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = [
        (name, "serialization", TypeAdapter(kind)) for name, kind in sorted(kinds.items())
    ]
    references, definitions = TypeAdapter.json_schemas(inputs)
    unavailable = references["unavailable", "serialization"]
    facts = {name: {"anyOf": [references[name, "serialization"], unavailable]} for name in sorted(groups)}
    schema = SnapshotDocument.json_schema()
    schema["properties"]["facts"] = {"type": "object", "properties": facts}
    return {**schema, "title": "kdoctor snapshot", **definitions}
