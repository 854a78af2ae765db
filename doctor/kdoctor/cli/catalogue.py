"""``kdoctor list`` and ``kdoctor explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from kdoctor.cli.listing import explain as words_about
from kdoctor.cli.listing import list_checklists, list_checks, list_scenarios
from kdoctor.cli.options import PluginOption
from kdoctor.cli.stderr import show
from kdoctor.engine.catalog import load_catalog


def list_(
    *,
    scenarios: Annotated[bool, typer.Option("--scenarios", help="The smoke trainings.")] = False,
    checklists: Annotated[bool, typer.Option("--checklists", help="The shipped checklists.")] = False,
    plugin: PluginOption = None,
) -> None:
    """List the checks, or the scenarios, or the checklists."""
    catalog = load_catalog(plugin or ())
    wanted = [list_scenarios] * scenarios + [list_checklists] * checklists or [list_checks]
    show("\n".join(write(catalog) for write in wanted))


def explain(
    check_id: Annotated[str, typer.Argument(metavar="ID", help="Id of a check or of a scenario.")],
    *,
    plugin: PluginOption = None,
) -> None:
    """Say what a check or scenario tests, why it matters, where the criterion is from, and what to do."""
    show(words_about(load_catalog(plugin or ()), check_id))
