"""The reference of all checks."""

from kdoctor.catalog.load import Catalog
from kdoctor.check import Check
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.truth import features_of_checks
from kdoctor.model import family_order
from kdoctor.report.phrases import family_title


def checks_page(catalog: Catalog) -> str:
    """The reference of all checks."""
    lines = ["# Checks", ""]
    lines += ["Severity: *error* prevents a job from starting, *warning* does not. A checklist can change it.", ""]
    matrix = load_matrix(environ={})
    for family in sorted({check.family for check in catalog.checks.values()}, key=family_order):
        lines += [f"## {family_title(family)}", ""]
        lines += [line for check in catalog.checks.values() if check.family == family for line in _check(check, matrix)]
    return "\n".join(lines).rstrip() + "\n"


def _check(check: Check, matrix: VersionMatrix) -> list[str]:
    lines = [f"### {check.id}", "", f"**{check.title}** ({check.severity.value})", "", check.why, ""]
    lines += [f"Fix: {check.remedy}", ""]
    if check.failure_modes:
        modes = ", ".join(f"[`{mode}`](failure-modes/{mode}.md)" for mode in check.failure_modes)
        lines += [f"Detects known failures: {modes}.", ""]
    if measured := features_of_checks(matrix, [check.id]):
        names = ", ".join(f"`{name}`" for name in measured)
        lines += [f"Measured by release ([what distributed Keras does](keras-truth.md)): {names}.", ""]
    if check.requires:
        lines += [f"Requires: {', '.join(f'`{item}`' for item in check.requires)}.", ""]
    if check.needs_gpus:
        lines += ["Skipped if the checklist expects no GPUs.", ""]
    if check.scenario:
        lines += [f"Scenario: `{check.scenario}`.", ""]
    if check.parameters:
        shown = (f"`{parameter.name}` (default `{parameter.default!r}`)" for parameter in check.parameters.values())
        lines += [f"Parameters: {', '.join(shown)}.", ""]
    return [*lines, f"Sources: {', '.join(f'<{source}>' for source in check.sources)}", ""]
