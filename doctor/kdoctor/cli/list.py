"""``kdoctor list``."""

from itertools import takewhile
from typing import Annotated, Literal, get_args

import typer

from kdoctor.catalog.load import Catalog, load_catalog
from kdoctor.cli.options import PluginOption
from kdoctor.cli.stderr import show
from kdoctor.engine.listing import Kind, make_listing
from kdoctor.smoke.scenario import TIERS
from kdoctor.text.wrap import wrap

_INDENT = "  "


def list_(
    what: Annotated[
        Literal["checks", "scenarios", "checklists"] | None,
        typer.Argument(help="What to list. \\[default: checks; with --format json everything]", show_default=False),
    ] = None,
    *,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["terminal", "json"], typer.Option("--format", "-f", help="Output format.")
    ] = "terminal",
    plugin: PluginOption = None,
) -> None:
    """List the checks, scenarios or checklists."""
    catalog = load_catalog(plugin or ())
    if format == "json":
        show(make_listing(catalog, [what] if what else get_args(Kind)).to_json(), rendered=True)
        return
    write = {"checks": list_checks, "scenarios": list_scenarios, "checklists": list_checklists}
    show(write[what or "checks"](catalog))


def list_checks(catalog: Catalog) -> str:
    """The checks by family: id, severity and title."""
    lines: list[str] = []
    for family in catalog.families:
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
    last = ("To train a tier and all faster ones: kdoctor smoke --tier TIER", "Details: kdoctor explain ID")
    return "\n".join([*lines, *last, ""])


def list_checklists(catalog: Catalog) -> str:
    """The shipped checklists: name and the comment with which each begins."""
    lines = ["checklists"]
    for name in catalog.checklists:
        text = catalog.shipped_checklist(name).decode()
        opening = takewhile(lambda line: line.startswith("#"), text.splitlines())
        lines += [f"{_INDENT}{name}", *wrap(" ".join(line.strip("# ") for line in opening), first=_INDENT * 3)]
    return "\n".join([*lines, "", "To print one: kdoctor checklist show NAME", ""])


def _entry(name: str, word: str, title: str) -> list[str]:
    return [f"{_INDENT}{name} ({word})", *wrap(title, first=_INDENT * 3)]
