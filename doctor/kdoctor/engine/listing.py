"""What is installed, for programs (``kdoctor list --format json``)."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from kdoctor.catalog.load import Catalog
from kdoctor.check import Check
from kdoctor.documents import Document, Part
from kdoctor.model import Severity
from kdoctor.smoke.scenario import Scenario
from kdoctor.version import __version__

Kind = Literal["checks", "scenarios", "checklists"]


class ListedParameter(Part):
    """What a checklist may set of a check."""

    name: str
    type: str
    default: Any


class ListedCheck(Part):
    """One check."""

    id: str
    family: str
    severity: Severity
    title: Annotated[str, Field(description="The healthy condition.")]
    why: str
    remedy: str
    sources: tuple[str, ...]
    requires: Annotated[tuple[str, ...], Field(description="Checks that must pass first.")]
    failure_modes: Annotated[tuple[str, ...], Field(description="Known failures that it detects.")]
    scenario: Annotated[str | None, Field(description="The training that it judges.")]
    needs_gpus: Annotated[bool, Field(description="Whether it is skipped if the checklist expects no GPUs.")]
    parameters: tuple[ListedParameter, ...]


class ListedScenario(Part):
    """One smoke training."""

    id: str
    version: int
    kind: str
    title: str
    expect: str
    cases: tuple[str, ...]
    tier: str
    strategy: str
    framework: str
    deadline_s: Annotated[float, Field(description="Seconds for each case.")]
    typical_s: Annotated[float, Field(description="Seconds for all cases on two CPU devices.")]


class Listing(Document):
    """Checks, scenarios and checklists of the installed plugins."""

    schema_: Annotated[Literal["kdoctor/list/v1"], Field(alias="schema")] = "kdoctor/list/v1"
    kdoctor: Annotated[str, Field(description="Version of kdoctor.")] = __version__
    checks: Annotated[tuple[ListedCheck, ...] | None, Field(description="null if they were not asked for")] = None
    scenarios: Annotated[tuple[ListedScenario, ...] | None, Field(description="null if they were not asked for")] = None
    checklists: Annotated[tuple[str, ...] | None, Field(description="Names; null if they were not asked for")] = None


def make_listing(catalog: Catalog, kinds: Iterable[Kind]) -> Listing:
    """The document with these kinds."""
    asked = frozenset(kinds)
    return Listing(
        checks=tuple(map(_check, catalog.checks.values())) if "checks" in asked else None,
        scenarios=tuple(map(_scenario, catalog.scenarios.values())) if "scenarios" in asked else None,
        checklists=tuple(catalog.checklists) if "checklists" in asked else None,
    )


def _check(check: Check) -> ListedCheck:
    shared = {name: getattr(check, name) for name in ListedCheck.model_fields if name != "parameters"}
    parameters = (
        ListedParameter(
            name=item.name,
            type=getattr(item.annotation, "__name__", None) or str(item.annotation),
            default=item.default,
        )
        for item in check.parameters.values()
    )
    return ListedCheck(**shared, parameters=tuple(parameters))


def _scenario(scenario: Scenario) -> ListedScenario:
    return ListedScenario(**{name: getattr(scenario, name) for name in ListedScenario.model_fields})
