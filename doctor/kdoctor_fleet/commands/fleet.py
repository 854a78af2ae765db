"""``kdoctor fleet``."""

import time
from pathlib import Path
from typing import Annotated

import typer

from kdoctor.cli import options
from kdoctor.cli.completion import beginning_with, complete_checklist
from kdoctor.cli.options import option
from kdoctor.cli.stderr import show
from kdoctor.errors import one_of
from kdoctor_fleet.commands import common
from kdoctor_fleet.commands.manifest import manifest
from kdoctor_fleet.commands.run import run
from kdoctor_fleet.diff import compare, read_report
from kdoctor_fleet.exclusion import ENGINES
from kdoctor_fleet.history import read_history
from kdoctor_fleet.merge import Expectation
from kdoctor_fleet.plugin import FLEET

app = typer.Typer(
    help=FLEET.help,
    epilog="Example: kdoctor fleet merge reports/ --expect node[001-064]",
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _fleet() -> None:
    """Check many nodes."""


app.command("run", epilog="Example: kdoctor fleet run --engine ssh --nodes node[01-64] -- --no-smoke")(run)
app.command("manifest", epilog="Example: kdoctor fleet manifest --image IMAGE --nodes 4 | kubectl apply -f -")(manifest)


@app.command("merge", epilog="Example: kdoctor fleet merge reports/ --expect node[001-064] --lists .")
def merge_(
    reports: Annotated[
        list[str],
        typer.Argument(metavar="REPORT|DIR|-", help="JSON reports or snapshots, folders of them, or - for stdin."),
    ],
    *,
    expect: Annotated[str | None, option("The expected nodes: node[001-064].", metavar="NODES")] = None,
    expect_file: Annotated[Path | None, option("File with the expected nodes.", metavar="FILE")] = None,
    min_healthy: common.MinHealthyOption = None,
    lists: common.ListsOption = None,
    engine: Annotated[
        str | None,
        option(
            "Whose words to use for leaving nodes out. \\[default: that of the nodes' launcher]",
            metavar="|".join(ENGINES),
            autocompletion=lambda incomplete: beginning_with(incomplete, ENGINES),
        ),
    ] = None,
    checklist: common.FleetChecklistOption = "fleet",
    node_checklist: Annotated[
        str, typer.Option(help="Checklist for snapshots, which have no verdict.", autocompletion=complete_checklist)
    ] = options.DEFAULT_CHECKLIST,
    format: common.FleetFormatOption = None,  # noqa: A002 - the option's name
    output: options.OutputOption = None,
    verbose: options.VerboseOption = 0,
    quiet: options.QuietOption = False,
    plugin: options.PluginOption = None,
) -> None:
    """Bring the reports of many nodes together: which nodes are bad, which differ in what, and which to use.

    Exit codes: 0 enough nodes passed; 1 too few; 2 usage error; 3 inconclusive.
    """
    delivery = common.Delivery.of(
        checklist=checklist,
        lists=lists,
        min_healthy=min_healthy,
        format=format,
        output=output or (),
        verbose=verbose,
        quiet=quiet,
        plugin=plugin or (),
    )
    chosen = one_of("--engine", engine, ENGINES) if engine else None
    expectation = Expectation(names=common.expected_nodes(expect, expect_file), engine=chosen)
    found = delivery.judge(reports, expectation, node_checklist=node_checklist, begun=time.monotonic())
    raise typer.Exit(delivery.deliver(found))


_FormatOption = Annotated[str, typer.Option("--format", "-f", metavar="terminal|json", help="Output format.")]


@app.command("diff", epilog="Example: kdoctor fleet diff monday.json tuesday.json")
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="JSON report of a fleet.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="A later one.")],
    *,
    format: _FormatOption = "terminal",  # noqa: A002 - the option's name
) -> None:
    """Compare two runs over a fleet: nodes that got worse or better, and problems that came or went."""
    wanted = one_of("--format", format, ("terminal", "json"))
    compared = compare(read_report(old), read_report(new))
    show(compared.to_json() if wanted == "json" else compared.to_text())


@app.command("history", epilog="Example: kdoctor fleet history history/")
def history(
    reports: Annotated[list[Path], typer.Argument(metavar="REPORT|DIR", help="JSON reports of a fleet, or folders.")],
    *,
    format: _FormatOption = "terminal",  # noqa: A002 - the option's name
) -> None:
    """Show a fleet over time: each run, and the nodes that did not pass in all of them."""
    wanted = one_of("--format", format, ("terminal", "json"))
    found = read_history(reports)
    show(found.to_json() if wanted == "json" else found.to_text())
