"""What is there, in words: the checks, the scenarios, the checklists, and one of them explained."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from kdoctor.check import Check, Parameter
from kdoctor.engine.catalog import Catalog
from kdoctor.errors import UsageError, did_you_mean
from kdoctor.model import FAMILIES
from kdoctor.smoke.scenario import TIERS, Scenario

_WIDTH = 80
_INDENT = "  "


def list_checks(catalog: Catalog) -> str:
    """Every check by family: id, severity and the healthy condition."""
    lines: list[str] = []
    for family in FAMILIES:
        checks = [check for check in catalog.checks.values() if check.family == family]
        if checks:
            lines += [
                family,
                *(line for check in checks for line in _entry(check.id, check.severity.value, check.title)),
            ]
            lines.append("")
    return "\n".join([*lines, "kdoctor explain ID says more about each.", ""])


def list_scenarios(catalog: Catalog) -> str:
    """Every scenario by tier: id, kind, strategy and title."""
    lines: list[str] = []
    for tier in TIERS:
        scenarios = [item for item in catalog.scenarios.values() if item.tier == tier]
        if scenarios:
            lines += [f"scenarios of tier {tier}"]
            lines += [
                line for item in scenarios for line in _entry(item.id, f"{item.kind}, {item.strategy}", item.title)
            ]
            lines += [""]
    last = "kdoctor smoke --tier TIER trains a tier and the quicker ones; kdoctor explain ID says more about each."
    return "\n".join([*lines, *textwrap.wrap(last, _WIDTH), ""])


def list_checklists(catalog: Catalog) -> str:
    """The names of the shipped checklists."""
    names = [f"{_INDENT}{name}" for name in catalog.checklists]
    return "\n".join(["checklists", *names, "", "kdoctor checklist show NAME prints one.", ""])


def explain(catalog: Catalog, name: str) -> str:
    """What a check or a scenario is about. Where one name is both, both are explained.

    Raises:
        UsageError: there is neither of that name.
    """
    check, scenario = catalog.checks.get(name), catalog.scenarios.get(name)
    if check is None and scenario is None:
        known = [*catalog.checks, *catalog.scenarios]
        raise UsageError(f"there is no check {name!r}{did_you_mean(name, known)}", hint="kdoctor list shows them all.")
    parts = [_explain_check(check)] if check else []
    parts += [_explain_scenario(scenario)] if scenario else []
    return "\n".join(parts)


def _entry(name: str, word: str, title: str) -> list[str]:
    wrapped = textwrap.wrap(title, _WIDTH, initial_indent=_INDENT * 3, subsequent_indent=_INDENT * 3)
    return [f"{_INDENT}{name} ({word})", *wrapped]


def _explain_check(check: Check) -> str:
    lines = [f"{check.id} ({check.severity.value})", *_paragraph(check.title), "", "Why", *_paragraph(check.why)]
    lines += ["", "What to do", *_paragraph(check.remedy)]
    lines += ["", "Sources", *(f"{_INDENT}{source}" for source in check.sources)]
    if check.failure_modes:
        lines += ["", "Known failures that it catches", *_paragraph(", ".join(check.failure_modes))]
    if check.requires:
        lines += ["", "Needs", *_paragraph(f"{', '.join(check.requires)} not to have failed")]
    if check.scenario:
        lines += ["", "Judges the scenario", f"{_INDENT}{check.scenario}"]
    if check.needs_gpus:
        lines += ["", *_paragraph("Skipped under a checklist that expects no GPUs.")]
    if check.parameters:
        lines += ["", "Parameters that a checklist may set", *map(_parameter, check.parameters.values())]
    return "\n".join([*lines, ""])


def _parameter(parameter: Parameter) -> str:
    kind = getattr(parameter.annotation, "__name__", None) or str(parameter.annotation)
    return f"{_INDENT}{parameter.name}: {kind} = {parameter.default!r}"


def _explain_scenario(scenario: Scenario) -> str:
    lines = [f"Scenario {scenario.id}, version {scenario.version} ({scenario.kind})", *_paragraph(scenario.title)]
    lines += ["", "Expected", *_paragraph(scenario.expect), "", "Cases", *_paragraph(", ".join(scenario.cases))]
    kinds = f"{scenario.tier}, {scenario.strategy}, {scenario.framework}"
    lines += ["", "Tier, strategy and framework", f"{_INDENT}{kinds}"]
    last = (
        f"Each case has {scenario.deadline_s:g} s, in a process of its own; all of them took {scenario.typical_s:g} s "
        "over two CPU devices where they were measured."
    )
    if scenario.pair_s:
        last += f" Each pair of three replicas or more adds {scenario.pair_s:g} s there."
    return "\n".join([*lines, "", *textwrap.wrap(last, _WIDTH), ""])


def _paragraph(text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )
