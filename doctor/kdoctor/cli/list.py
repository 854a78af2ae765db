"""``kdoctor list`` and ``kdoctor explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from kdoctor.check import Check, Parameter
from kdoctor.cli.options import PluginOption
from kdoctor.cli.stderr import show
from kdoctor.engine.catalog import Catalog, load_catalog
from kdoctor.errors import UsageError, did_you_mean
from kdoctor.model import FAMILIES
from kdoctor.smoke.scenario import TIERS, Scenario
from kdoctor.text.wrap import wrap

_INDENT = "  "


def list_(
    *,
    scenarios: Annotated[bool, typer.Option("--scenarios", help="List the smoke trainings.")] = False,
    checklists: Annotated[bool, typer.Option("--checklists", help="List the shipped checklists.")] = False,
    plugin: PluginOption = None,
) -> None:
    """List the checks, scenarios or checklists."""
    catalog = load_catalog(plugin or ())
    parts = [list_scenarios(catalog)] if scenarios else []
    parts += [list_checklists(catalog)] if checklists else []
    show("\n".join(parts or [list_checks(catalog)]))


def explain(
    name: Annotated[str, typer.Argument(metavar="ID", help="Id of a check or scenario.")],
    *,
    plugin: PluginOption = None,
) -> None:
    """Explain a check or scenario: its purpose, source, and how to fix a failure."""
    catalog = load_catalog(plugin or ())
    check, scenario = catalog.checks.get(name), catalog.scenarios.get(name)
    if check is None and scenario is None:
        known = [*catalog.checks, *catalog.scenarios]
        raise UsageError(
            f"unknown check or scenario {name!r}{did_you_mean(name, known)}", hint="To list them: kdoctor list"
        )
    parts = [explain_check(check)] if check else []
    parts += [explain_scenario(scenario)] if scenario else []
    show("\n".join(parts))


def list_checks(catalog: Catalog) -> str:
    """The checks by family: id, severity and title."""
    lines: list[str] = []
    for family in FAMILIES:
        checks = [check for check in catalog.checks.values() if check.family == family]
        if checks:
            lines += [family]
            lines += [line for check in checks for line in _entry(check.id, check.severity.value, check.title)]
            lines += [""]
    return "\n".join([*lines, "Details: kdoctor explain ID", ""])


def list_scenarios(catalog: Catalog) -> str:
    """The scenarios by tier: id, kind, strategy and title."""
    lines: list[str] = []
    for tier in TIERS:
        scenarios = [item for item in catalog.scenarios.values() if item.tier == tier]
        if scenarios:
            lines += [f"scenarios of tier {tier}"]
            lines += [
                line for item in scenarios for line in _entry(item.id, f"{item.kind}, {item.strategy}", item.title)
            ]
            lines += [""]
    last = "'kdoctor smoke --tier TIER' trains a tier and all faster ones. Details: kdoctor explain ID"
    return "\n".join([*lines, *wrap(last), ""])


def list_checklists(catalog: Catalog) -> str:
    """The names of the shipped checklists."""
    names = [f"{_INDENT}{name}" for name in catalog.checklists]
    return "\n".join(["checklists", *names, "", "To print one: kdoctor checklist show NAME", ""])


def _entry(name: str, word: str, title: str) -> list[str]:
    return [f"{_INDENT}{name} ({word})", *wrap(title, first=_INDENT * 3)]


def explain_check(check: Check) -> str:
    """Everything that its author says about a check."""
    sections = [
        ("Why it matters", _paragraph(check.why)),
        ("Fix", _paragraph(check.remedy)),
        ("Source", [f"{_INDENT}{source}" for source in check.sources]),
        ("Detected failures", _paragraph(", ".join(check.failure_modes))),
        ("Prerequisites", _paragraph(", ".join(check.requires))),
        ("Scenario", _paragraph(check.scenario or "")),
        ("GPUs", _paragraph("Skipped if the checklist expects no GPUs." if check.needs_gpus else "")),
        ("Parameters for checklists", [_parameter(item) for item in check.parameters.values()]),
    ]
    return _sections(f"{check.id} ({check.severity.value})", check.title, sections)


def explain_scenario(scenario: Scenario) -> str:
    """What a scenario trains, and how long it takes."""
    duration = (
        f"At most {scenario.deadline_s:g} s for each case, in its own process. "
        f"All cases took {scenario.typical_s:g} s on two CPU devices."
    )
    if scenario.pair_s:
        duration += f" With three or more replicas, add {scenario.pair_s:g} s for each pair."
    sections = [
        ("Expected", _paragraph(scenario.expect)),
        ("Cases", _paragraph(", ".join(scenario.cases))),
        ("Tier, strategy and framework", [f"{_INDENT}{scenario.tier}, {scenario.strategy}, {scenario.framework}"]),
        ("Duration", _paragraph(duration)),
    ]
    return _sections(f"Scenario {scenario.id}, version {scenario.version} ({scenario.kind})", scenario.title, sections)


def _sections(heading: str, title: str, sections: list[tuple[str, list[str]]]) -> str:
    lines = [heading, *_paragraph(title)]
    for name, body in sections:
        lines += ["", name, *body] if body else []
    return "\n".join([*lines, ""])


def _parameter(parameter: Parameter) -> str:
    kind = getattr(parameter.annotation, "__name__", None) or str(parameter.annotation)
    return f"{_INDENT}{parameter.name}: {kind} = {parameter.default!r}"


def _paragraph(text: str) -> list[str]:
    return wrap(text, first=_INDENT)
