"""The checklist that the engine works with, made from its document and the catalog."""

import json
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import TypeAdapter

from kdoctor.catalog.load import Catalog
from kdoctor.check import Check, Parameter
from kdoctor.checklist.extends import Override
from kdoctor.checklist.schema import AssumptionsPart, ChecklistDocument, RollbackPart
from kdoctor.engine.judge import Rules
from kdoctor.engine.report import ChecklistName, ScenarioNote, Waiver
from kdoctor.model import Assumptions, GpuAssumption, Severity
from kdoctor.records import record
from kdoctor.smoke.scenario import Scenario
from kdoctor.yamldoc.validation import StrictPart


@record
class ChecklistEntry:
    """A check as a checklist asks for it."""

    check: Check
    severity: Severity
    parameters: Mapping[str, Any] = field(default_factory=dict)
    accept_unknown: str | None = None
    """Why it may be unknown here."""
    added_for: tuple[str, ...] = ()
    """The assumptions that it was added to judge; empty for an entry of the file."""


@record
class ScenarioEntry:
    """A smoke training as a checklist asks for it."""

    scenario: Scenario
    replicas: int | Literal["gpus"]
    """Number of logical CPU devices, or one replica per visible GPU."""
    expect: str

    @property
    def note(self) -> ScenarioNote:
        """What a report says about it."""
        return ScenarioNote(id=self.scenario.id, kind=self.scenario.kind, expect=self.expect)


@record
class Checklist:
    """A valid checklist, ready to be planned. Everything that it names exists."""

    name: str
    version: int
    owner: str
    source: str
    """The file it was read from, or ``shipped``."""
    assumptions: Assumptions
    entries: tuple[ChecklistEntry, ...]
    """In the order of the file."""
    scenarios: tuple[ScenarioEntry, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    rollback: RollbackPart | None = None
    without: Mapping[str, str] = field(default_factory=dict)
    """Kind of scenario, or id of an inherited entry that was left out, to the reason."""
    extends: tuple[str, ...] = ()
    """The checklists below it, nearest first."""
    overrides: tuple[Override, ...] = ()
    """What it changes in them."""

    @property
    def asked_as(self) -> str:
        """Its argument on the command line: the name of a shipped checklist, or the file."""
        return self.name if self.source == "shipped" else self.source

    @property
    def title(self) -> ChecklistName:
        """Its name and version, for the report."""
        return ChecklistName(name=self.name, version=self.version)

    def rules(self, *, today: date, fail_on: Severity = Severity.ERROR, allow_unknown: bool = False) -> Rules:
        """What the judge needs besides the checks."""
        return Rules(
            assumptions=self.assumptions,
            waivers=self.waivers,
            today=today,
            fail_on=fail_on,
            allow_unknown=allow_unknown,
            scenarios={entry.scenario.id: entry.scenario.version for entry in self.scenarios},
        )


SEVERITY_PATTERNS = tuple(f"severity:{severity.value}" for severity in Severity)
"""Patterns in a rollback section that match every check of that severity."""


def matches(check: Check, pattern: str) -> bool:
    """Whether a pattern (an id, a family, or a glob over ids) matches a check."""
    return pattern == check.family or fnmatchcase(check.id, pattern)


_LARGEST = 1e15
"""Bytes and the like; products with it are still finite."""


def parameter_value(parameter: Parameter, value: Any) -> Any:
    """The value as the check takes it. JSON's strict rules fit YAML: a list becomes a tuple.

    Raises:
        ValueError: it has the wrong type, or is a number that no limit can be.
    """
    # Every comparison with NaN is false, so a limit of NaN would pass everything.
    numbers = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, int | float)]
    if not all(0 <= number <= _LARGEST for number in numbers):
        raise ValueError(f"it must be from 0 to {_LARGEST:.0e}")
    text = json.dumps(value, default=str, allow_nan=False)
    return TypeAdapter(parameter.annotation).validate_json(text, strict=True)


def make_checklist(document: ChecklistDocument, catalog: Catalog, origin: str) -> Checklist:
    """The checklist of a document whose names all exist; ``origin`` is its file, or ``shipped``."""
    return Checklist(
        name=document.name,
        version=document.version,
        owner=document.owner,
        source=origin,
        assumptions=_assumptions(document.assumptions),
        entries=tuple(
            ChecklistEntry(
                check=(check := catalog.checks[part.id]),
                severity=part.severity or check.severity,
                parameters={
                    name: parameter_value(check.parameters[name], value) for name, value in part.parameters.items()
                },
                accept_unknown=part.accept_unknown,
            )
            for part in document.checks
        ),
        scenarios=tuple(
            ScenarioEntry(
                scenario=catalog.scenarios[part.id],
                replicas=part.replicas if isinstance(part.replicas, int) else "gpus",
                expect=part.expect,
            )
            for part in document.scenarios
        ),
        waivers=tuple(Waiver(**dict(part)) for part in document.waivers),
        rollback=document.rollback,
        without=dict(document.without),
    )


def add_judges(checklist: Checklist, catalog: Catalog) -> Checklist:
    """The checklist with a check for each assumption that none of its checks judges.

    A check that the checklist leaves out with a reason is not added.
    """
    listed = catalog.closure(entry.check.id for entry in checklist.entries)
    missing = checklist.assumptions.stated().difference(*(check.judges for check in listed))
    added = tuple(
        ChecklistEntry(check=check, severity=check.severity, added_for=tuple(sorted(judged)))
        for check in catalog.checks.values()
        if (judged := missing.intersection(check.judges)) and check.id not in checklist.without
    )
    return replace(checklist, entries=(*checklist.entries, *added))


def _assumptions(part: AssumptionsPart) -> Assumptions:
    sections = {"framework": _stated(part.framework), "sdk": _stated(part.sdk)}
    gpus = GpuAssumption(**dict(part.gpus)) if part.gpus else None
    return Assumptions(**{**dict(part), **sections, "gpus": gpus})


def _stated(part: StrictPart | None) -> dict[str, str]:
    return {name: value for name, value in part or () if value is not None}
