"""JSON Schemas of the documents that commands print for programs, beside the report, the snapshot and the checklist.

The commands write their documents without this module: what they print is held to it by tests, in both directions.
Within a version keys are added, so the schemas allow more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kdoctor.model import Severity
from kdoctor.report.formats import report_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Part(BaseModel):
    """A part of a document. Within a schema version keys are only added, so unknown ones are allowed."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Document(Part):
    """A whole document: it validates what is read, is written as JSON, and gives its JSON Schema (draft 2020-12)."""

    def to_json(self) -> str:
        """The document as JSON text with a final line feed."""
        return self.model_dump_json(by_alias=True, indent=2) + "\n"

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema, titled by the document's schema version."""
        schema = cls.model_json_schema(by_alias=True, mode="serialization")
        return {"$schema": DIALECT, **schema, "title": schema["properties"]["schema"]["const"]}


# kdoctor rollback --format json


class RollbackStep(Part):
    """One step of the way back."""

    title: str
    restores: Annotated[list[str], Field(description="Each fact that it brings back, from what to what.")]
    commands: Annotated[list[str], Field(description="Shell commands, in order.")]
    verify: Annotated[list[str], Field(description="Shell commands that end with 0 where the step worked.")]
    needs_root: bool
    needs_reboot: bool
    in_shell: Annotated[bool, Field(description="Whether the commands change the shell that runs them.")]
    elsewhere: Annotated[str | None, Field(description="Where they are to be run, if not on this machine.")]


class Rollback(Part):
    """The way back to a lock."""

    schema_: Annotated[Literal["kdoctor/rollback/v1"], Field(alias="schema")]
    lock: str
    recorded: Annotated[str, Field(description="UTC, ISO 8601.")]
    caution: Annotated[str | None, Field(description="Why this may be the wrong environment.")]
    steps: Annotated[list[RollbackStep], Field(description="In a safe order.")]
    by_hand: Annotated[list[str], Field(description="What no command brings back, each with the reason.")]
    unread: Annotated[list[str], Field(description="What could not be compared, each with the reason.")]
    again: Annotated[str, Field(description="The command that examines the same environment once more.")]


# kdoctor lint --format json


class LintFinding(Part):
    """One spot that a rule objects to. Lines and columns count from 1."""

    rule: str
    severity: Severity
    path: str
    cell: Annotated[int | None, Field(description="The notebook's code cell, which the line counts within.")]
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    source: Annotated[str, Field(description="The line of code.")]


class IgnoredFinding(LintFinding):
    """A spot that a comment in the code excuses."""

    reason: str


class LintRule(Part):
    """A rule that found something."""

    title: str
    why: str
    corrected: Annotated[str, Field(description="Code that the rule does not object to.")]
    sources: list[str]


class Lint(Part):
    """What was found in scripts and notebooks."""

    schema_: Annotated[Literal["kdoctor/lint/v1"], Field(alias="schema")]
    kdoctor: str
    files: list[str]
    findings: list[LintFinding]
    ignored: list[IgnoredFinding]
    rules: Annotated[dict[str, LintRule], Field(description="By the id that a finding names.")]
    notes: list[str]


# kdoctor topology --format json


class TopologyGpu(Part):
    """A GPU and its place."""

    index: int
    bus_id: str | None
    uuid: str | None
    name: str | None
    numa_node: int | None
    lost: bool
    narrow_link: str | None


class TopologyPair(Part):
    """What connects two GPUs."""

    first: int
    second: int
    link: Annotated[str, Field(description="NV12, PIX, ...; ? where nothing is known.")]
    level: str | None
    nvlinks: int | None
    blocked: str | None
    bandwidth_gbs: Annotated[float | None, Field(description="In one direction, GB/s, by version and width.")]


class TopologyBranch(Part):
    """A part of the machine, and what hangs below it."""

    label: str
    children: list[TopologyBranch]
    trouble: str | None


class TopologyChoice(Part):
    """The GPUs to take for a number of replicas."""

    replicas: int
    gpus: list[int]
    environment: dict[str, str]
    slowest: TopologyPair | None
    best_of_machine: TopologyPair | None
    bandwidth_share: Annotated[float | None, Field(description="The slowest pair's of the best one's, 0 to 1.")]
    numa_crossings: int | None
    sets_compared: int
    cross_device_ops: str | None
    fallback: str | None
    why: str


class Topology(Part):
    """How the GPUs are connected, and which to take."""

    schema_: Annotated[Literal["kdoctor/topology/v1"], Field(alias="schema")]
    gpus: list[TopologyGpu]
    pairs: list[TopologyPair]
    tree: list[TopologyBranch]
    choices: list[TopologyChoice]


def _schema_of(document: type[BaseModel], title: str) -> dict[str, Any]:
    schema = document.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": DIALECT, **schema, "title": title}


def _document(module: str, name: str) -> dict[str, Any]:
    model: type[Document] = getattr(import_module(module), name)
    return model.json_schema()


def _history() -> dict[str, Any]:
    """A line of the export: a report as the kdoctor of its day wrote it, so keys that came since may be missing."""
    schema = report_schema()
    parts = {name: {key: part[key] for key in part if key != "required"} for name, part in schema["$defs"].items()}
    own = {
        "run": {"type": "integer", "description": "The run's number."},
        "host": {"type": "string"},
        "scope": {"type": "string", "description": "The options that narrowed the run."},
    }
    return {
        **schema,
        "title": "a line of kdoctor history export",
        "$defs": parts,
        "properties": {**own, **schema["properties"]},
        "required": [*own, "schema", "kdoctor", "verdict", "exit_code", "checklist", "started_at", "results"],
    }


_SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "checklist-diff": lambda: _document("kdoctor.diff.model", "ChecklistDiff"),
    "rollback": lambda: _schema_of(Rollback, "kdoctor/rollback/v1"),
    "history": _history,
    "lint": lambda: _schema_of(Lint, "kdoctor/lint/v1"),
    "matrix": lambda: _document("kdoctor.matrix.json", "MatrixAnswer"),
    "topology": lambda: _schema_of(Topology, "kdoctor/topology/v1"),
}


def document_schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a document.

    Raises:
        KeyError: there is no document of that name.
    """
    return _SCHEMAS[name]()
