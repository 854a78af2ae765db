"""The checklist's document: what may stand in the file, whatever plugins are installed."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from kdoctor.checklist.problems import Problem
from kdoctor.errors import did_you_mean
from kdoctor.model import Severity
from kdoctor.smoke.scenario import Strategy
from kdoctor.yamldoc import Path, Source

SCHEMA = "kdoctor/checklist/v1"
"""The only version that this kdoctor knows."""

_DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("kdoctor", "{message}", {"message": message})


def _specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        hint = f'; for this release write "=={text}" or "~={text}"' if re.fullmatch(r"\d+(\.\d+)+", text) else ""
        raise _wrong(f"{text!r} is no version specifier (PEP 440), such as '>=3.10,<3.14'{hint}") from None
    if not text.strip():
        raise _wrong("the version specifier is empty, so it would test nothing: for any version write '>=0'")
    return text


def _distribution(name: str) -> str:
    if not _DISTRIBUTION.fullmatch(name):
        raise _wrong(f"{name!r} is no name of a package")
    return name


def _variable(name: str) -> str:
    if not name or "=" in name or "\0" in name:
        raise _wrong(f"{name!r} is no name of an environment variable")
    return name


def _filled(text: str) -> str:
    if not text.strip():
        raise _wrong("is empty: say it in words")
    return text.strip()


def _replicas(value: Any) -> Any:
    if value == "gpus" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 64):  # noqa: PLR2004
        return value
    meant = did_you_mean(str(value), ["gpus"])
    raise _wrong(f"expected 'gpus' (one on each visible GPU) or a number from 1 to 64, not {value!r}{meant}")


def _date(value: Any) -> dt.date:
    if isinstance(value, str):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            pass
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    raise _wrong(f"expected a date such as 2030-12-31, not {str(value)!r}")


def _none_is_empty(value: Any) -> Any:
    return [] if value is None else value


Specifier = Annotated[str, AfterValidator(_specifier)]
Words = Annotated[str, AfterValidator(_filled)]
Pattern = Annotated[str, AfterValidator(_filled)]
Replicas = Annotated[
    int | str,
    BeforeValidator(_replicas),
    WithJsonSchema({"anyOf": [{"const": "gpus"}, {"type": "integer", "minimum": 1, "maximum": 64}]}),
]
Date = Annotated[dt.date, BeforeValidator(_date)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class GpusPart(_Part):
    """The GPUs that are expected: how many, and of which model."""

    count: Annotated[int, Field(ge=0, description="Exactly this many; 0 expects none.")] | None = None
    at_least: Annotated[int, Field(ge=1, description="This many or more.")] | None = None
    model: Annotated[Words, Field(description="Pattern of the name: 'NVIDIA H100*'.")] | None = None


class AssumptionsPart(_Part):
    """What is taken for granted about the machine; each must be judged by a check of the list."""

    python: Annotated[Specifier, Field(description="Specifier of the interpreter's version.")] | None = None
    packages: dict[Annotated[str, AfterValidator(_distribution)], Specifier] = {}
    gpus: GpusPart | None = None
    environment: Annotated[
        dict[Annotated[str, AfterValidator(_variable)], str],
        Field(description="Variable to its exact value, or to the word unset."),
    ] = {}


class CheckPart(_Part):
    """A check that is asked for."""

    id: str
    severity: Annotated[Severity, Field(strict=False)] | None = None
    accept_unknown: Annotated[Words, Field(description="Why it may be unknown here.")] | None = None
    parameters: dict[str, Any] = {}


class ScenarioPart(_Part):
    """A smoke training that is asked for."""

    id: str
    kind: Literal["baseline", "edge-case", "failure-path"]
    strategy: Annotated[Strategy | None, Field(description="That of the scenario, for the reader.")] = None
    replicas: Replicas
    expect: Annotated[Words, Field(description="The expected outcome in plain language.")]


class WaiverPart(_Part):
    """A reviewed agreement to live with a failure for a while."""

    check: str
    subject: Annotated[Pattern, Field(description="Pattern of the subjects; all if it is not given.")] = "*"
    reason: Words
    owner: Words
    expires: Annotated[Date, Field(description="The last day on which it holds.")]


class RollbackPart(_Part):
    """What is decided in advance about failures.

    Patterns are ids, families or globs of the list's checks, or ``severity:error``, ``severity:warning`` and
    ``severity:info``.
    """

    decides: Annotated[Words, Field(description="Who decides.")]
    within: Annotated[Words, Field(description="By when it is decided: '30 minutes', 'the next morning'.")] | None = (
        None
    )
    at_once: Annotated[tuple[Pattern, ...], Field(strict=False, description="Failures to roll back at once.")] = ()
    fix_forward: Annotated[tuple[Pattern, ...], Field(strict=False, description="Failures to mend in place.")] = ()
    investigate: Annotated[tuple[Pattern, ...], Field(strict=False, description="Failures to look into first.")] = ()


class Document(_Part):
    """A checklist, as it is written."""

    schema_: Annotated[Literal["kdoctor/checklist/v1"], Field(alias="schema")]
    extends: Annotated[Words, Field(description="A shipped checklist's name, or a path from this file.")] | None = None
    name: Annotated[str, Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$")]
    version: Annotated[int, Field(ge=1)]
    owner: Words
    assumptions: AssumptionsPart = AssumptionsPart()
    checks: Annotated[list[CheckPart], Field(min_length=1)]
    scenarios: Annotated[list[ScenarioPart], BeforeValidator(_none_is_empty)] = []
    without: Annotated[
        dict[str, Words],
        Field(
            description="What this list does without, and why: a kind of scenario (baseline, edge-case, failure-path), "
            "or the id of an inherited check or scenario."
        ),
    ] = {}
    waivers: Annotated[list[WaiverPart], BeforeValidator(_none_is_empty)] = []
    rollback: RollbackPart | None = None


_PARTS: Mapping[tuple[str, ...], type[_Part]] = {
    (): Document,
    ("assumptions",): AssumptionsPart,
    ("assumptions", "gpus"): GpusPart,
    ("checks",): CheckPart,
    ("scenarios",): ScenarioPart,
    ("waivers",): WaiverPart,
    ("rollback",): RollbackPart,
}


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
    part = _PARTS.get(tuple(step for step in path if isinstance(step, str)), Document)
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
