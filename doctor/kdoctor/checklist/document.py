"""The checklist's document: what may stand in the file, whatever plugins are installed."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kdoctor.checklist.parts import PARTS, Document
from kdoctor.checklist.problems import Problem
from kdoctor.errors import did_you_mean
from kdoctor.yamldoc import Path, Source

SCHEMA = "kdoctor/checklist/v1"
"""The only version that this kdoctor knows."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the document, for editors and for ``kdoctor schema checklist``."""
    schema = Document.model_json_schema(by_alias=True)
    # A checklist that extends another says only what it says otherwise.
    inherited = [key for key in schema["required"] if key not in ("schema", "name", "version")]
    entry = schema["$defs"]["ScenarioPart"]
    schema["required"] = ["schema", "name", "version"]
    schema["if"] = {"not": {"required": ["extends"]}}
    schema["then"] = {
        "required": inherited,
        "properties": {"scenarios": {"items": {"required": entry.pop("required")}}},
    }
    entry["required"] = ["id"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": SCHEMA}


def read_document(source: Source) -> tuple[Document | None, list[Problem]]:
    """The document, or every problem of its form."""
    refused = refuse_other_schema(source)
    if refused:
        return None, [refused]
    try:
        return Document.model_validate(source.data), []
    except ValidationError as error:
        return None, list(_in_words(error.errors(include_url=False), source))


def refuse_other_schema(source: Source) -> Problem | None:
    """The problem of a document that is no checklist, or one that this kdoctor does not know."""
    if not isinstance(source.data, dict):
        message = f"a checklist is a mapping that starts with 'schema: {SCHEMA}', not {_kind(source.data)}"
        return source.problem((), message)
    stated = source.data.get("schema")
    if stated == SCHEMA:
        return None
    if "schema" not in source.data:
        return source.problem((), f"'schema: {SCHEMA}' is missing, so this is no checklist")
    newer = re.fullmatch(r"kdoctor/checklist/v(\d+)", str(stated))
    if newer:
        return source.problem(
            ("schema",), f"the schema {stated} is not known to this kdoctor, which reads {SCHEMA}: upgrade keras-doctor"
        )
    return source.problem(("schema",), f"the schema is {stated!r}, so this is no checklist (expected {SCHEMA})")


def _in_words(errors: list[ErrorDetails], source: Source) -> Iterator[Problem]:
    for error in errors:
        path = tuple(part for part in error["loc"] if part != "[key]")
        is_key = error["type"] == "extra_forbidden" or "[key]" in error["loc"]
        yield source.problem(path, _sentence(error, path, source), at_key=is_key)


def _sentence(error: ErrorDetails, path: Path, source: Source) -> str:  # noqa: PLR0911 - a table of wordings
    kind, value, name = error["type"], error["input"], _name(path)
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        fields = _fields(path[:-1])
        return f"unknown key {path[-1]!r}{did_you_mean(str(path[-1]), fields) or '; known are ' + ', '.join(fields)}"
    if kind == "missing":
        return f"{path[-1]!r} is missing"
    if kind == "too_short":
        return f"{name} selects nothing: a run of an empty checklist would test nothing"
    if path == ("checks",) and value is None:
        return "'checks' selects nothing: a run of an empty checklist would test nothing"
    if kind == "string_type" and path in source.texts:
        text = source.texts[path]
        return f'YAML reads {name} as {_kind(value)}: put it in quotes, "{text}"' if text else f"{name} is empty"
    if kind in ("literal_error", "enum"):
        known = re.findall(r"'([^']+)'", str(context.get("expected", "")))
        return f"{name} is {value!r}; expected one of {', '.join(known)}{did_you_mean(str(value), known)}"
    if kind in _EXPECTED:
        return f"{name}: expected {_EXPECTED[kind]}, not {_kind(value)}"
    if kind == "string_pattern_mismatch":
        return f"{name} is {value!r}; use small letters, digits and hyphens, such as 'multi-gpu-keras'"
    if kind == "kdoctor":
        return f"{name}{' ' if error['msg'].startswith('is ') else ': '}{error['msg']}"
    return f"{name} is {value!r}: {error['msg'][0].lower()}{error['msg'][1:]}"


_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def _fields(path: Path) -> list[str]:
    part = PARTS.get(tuple(step for step in path if isinstance(step, str)), Document)
    return [field.alias or name for name, field in part.model_fields.items()]


def _name(path: Path) -> str:
    """A path as people say it: ``'parameters.limit'``, ``an entry of 'checks'``."""
    words = [step for step in path if isinstance(step, str)]
    if path and isinstance(path[-1], int):
        return f"an entry of {words[-1]!r}"
    return repr(words[-1]) if words else "the checklist"


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    kinds: tuple[tuple[type, str], ...] = (
        (bool, f"the truth value {str(value).lower()}"),
        (int, f"the number {value}"),
        (float, f"the number {value}"),
        (str, f"the text {value!r:.60}"),
        (list, "a list"),
        (dict, "a mapping"),
        (dt.date, f"the date {value}"),
    )
    return next((words for kind, words in kinds if isinstance(value, kind)), type(value).__name__)
