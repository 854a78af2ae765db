"""All generated pages."""

from __future__ import annotations

from collections.abc import Callable

from docs.generator.checks import checks_page
from docs.generator.commands import cli_page, man_page
from docs.generator.failures import failure_modes_page
from docs.generator.handwritten import preflight_page, with_screens
from docs.generator.hardware import measured_hardware_page
from docs.generator.matrix import matrix_page
from docs.generator.truth import truth_page

from kdoctor.plugins.catalog import Catalog
from kdoctor_lint.reference import page as rules_page
from kdoctor_lint.reference import rule_pages


def _fixed(text: str) -> Callable[[Catalog], str]:
    """A page that does not depend on the catalog of checks."""
    return lambda _: text


PAGES = {
    "../README.md": with_screens("../README.md"),
    "checks.md": checks_page,
    "failure-modes.md": failure_modes_page,
    "index.md": with_screens("index.md"),
    "keras-truth.md": truth_page,
    "lint.md": _fixed(rules_page()),
    **{f"lint/{name}": _fixed(text) for name, text in rule_pages().items()},
    "measured-hardware.md": measured_hardware_page,
    "preflight.md": preflight_page,
    "reading-the-report.md": with_screens("reading-the-report.md"),
    "reference/cli.md": cli_page,
    "reference/kdoctor.1": man_page,
    "version-matrix.md": matrix_page,
}
"""File below docs/ to the function that writes it."""
