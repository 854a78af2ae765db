"""``kdoctor checklist``."""

from __future__ import annotations

from typing import Annotated

import typer

from kdoctor.cli.options import DEFAULT_CHECKLIST, PluginOption
from kdoctor.cli.streams import complain, show

app = typer.Typer(
    help="Read and validate checklists.",
    epilog="Example: kdoctor checklist validate ci/gpu-node.yaml",
    no_args_is_help=True,
)


@app.command(name="show", epilog="Example: kdoctor checklist show multi-gpu-keras > my-node.yaml")
def print_(
    checklist: Annotated[str, typer.Argument(metavar="FILE", help="Name or path of a checklist.")] = DEFAULT_CHECKLIST,
    *,
    plugin: PluginOption = None,
) -> None:
    """Print a checklist as it is written, if it is valid: the start of your own."""
    from kdoctor.catalog import load_catalog
    from kdoctor.checklist import load_checklist, read_text

    catalog = load_catalog(plugin or ())
    load_checklist(checklist, catalog)
    show(read_text(checklist, catalog))


@app.command(epilog="Example: kdoctor checklist validate ci/gpu-node.yaml")
def validate(
    checklist: Annotated[list[str], typer.Argument(metavar="FILE...", help="Names or paths of checklists.")],
    *,
    plugin: PluginOption = None,
) -> None:
    """Say every mistake in checklists with its line and column; nothing is run. Exit code 2 if there is one."""
    from kdoctor.catalog import load_catalog
    from kdoctor.checklist import ChecklistError, load_checklist
    from kdoctor.exit_codes import EXIT_USAGE

    catalog = load_catalog(plugin or ())
    broken = False
    for name in checklist:
        try:
            read = load_checklist(name, catalog)
        except ChecklistError as error:
            complain(str(error))
            broken = True
        else:
            typer.echo(
                f"{name}: valid ({read.name} version {read.version}: "
                f"{len(read.entries)} checks, {len(read.scenarios)} scenarios)"
            )
    raise typer.Exit(EXIT_USAGE if broken else 0)
