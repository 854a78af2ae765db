"""Writes the pages that stand on the code: ``make docs``. A test fails when a page differs from it."""

from __future__ import annotations

from pathlib import Path

from kdoctor.catalog import Catalog, load_catalog
from kdoctor.check import Check
from kdoctor.model import FAMILIES
from kdoctor.report.words import FAMILY_TITLES

DOCS = Path(__file__).parent
_NOTICE = "<!-- Written by `make docs` from the checks themselves; change them, not this page. -->"


def checks_page(catalog: Catalog) -> str:
    """The reference of checks."""
    lines = ["# Checks", "", _NOTICE, ""]
    lines += ["Severity: *error* means do not start the job, *warning* start knowingly. A checklist may change it.", ""]
    for family in FAMILIES:
        checks = [check for check in catalog.checks.values() if check.family == family]
        if checks:
            lines += [f"## {FAMILY_TITLES[family]}", ""]
            lines += [line for check in checks for line in _check(check)]
    return "\n".join(lines).rstrip() + "\n"


def _check(check: Check) -> list[str]:
    lines = [f"### {check.id}", "", f"**{check.title}** ({check.severity.value})", "", check.why, ""]
    lines += [f"What to do: {check.remedy}", ""]
    if check.requires:
        lines += [f"Not judged where one of these failed: {', '.join(f'`{item}`' for item in check.requires)}.", ""]
    if check.needs_gpus:
        lines += ["Skipped under a checklist that expects no GPUs.", ""]
    if check.scenario:
        lines += [f"Judges the scenario `{check.scenario}`.", ""]
    if check.parameters:
        shown = (f"`{parameter.name}` (default `{parameter.default!r}`)" for parameter in check.parameters.values())
        lines += [f"Parameters: {', '.join(shown)}.", ""]
    return [*lines, f"Sources: {', '.join(f'<{source}>' for source in check.sources)}", ""]


PAGES = {"checks.md": checks_page}
"""File below docs/ to the function that writes it."""


def main() -> None:
    """Write every page."""
    catalog = load_catalog()
    for name, write in PAGES.items():
        (DOCS / name).write_text(write(catalog), encoding="utf-8")


if __name__ == "__main__":
    main()
