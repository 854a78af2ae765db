"""``kdoctor history``."""

import json
import os
import sqlite3
import sys
from contextlib import AbstractContextManager
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from kdoctor.cli.options import option
from kdoctor.cli.stderr import show
from kdoctor.history import read, render
from kdoctor.history.diagnoses import diagnoses
from kdoctor.history.location import history_file
from kdoctor.history.store import opened
from kdoctor.run.log import warn
from kdoctor.text.canvas import canvas_for
from kdoctor.text.sanitize import clean

_TREND_RUNS = 40


class _ListByDefault(TyperGroup):
    """``kdoctor history --last 5`` is short for ``kdoctor history list --last 5``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the command ``list`` where none is named."""
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_ListByDefault,
    help="Show the runs on this machine, and what changed.",
    epilog="Example: kdoctor history list --last 50",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_NUMBERS = {"ignore_unknown_options": True}  # a negative RUN is not an option

RunArgument = Annotated[int, typer.Argument(metavar="RUN", help="Number of a run; -1 is the newest.")]


@app.command("list", epilog="Example: kdoctor history --last 50")
def list_(
    *,
    last: Annotated[
        int, typer.Option("--last", "-n", metavar="N", min=0, max=10**9, help="Number of runs to show; 0 shows all.")
    ] = 20,
    checklist: Annotated[str | None, option("Show only runs of this checklist.", "--checklist", "-c")] = None,
) -> None:
    """List the runs with their changes, then flaky checks and trends."""
    with _database() as connection:
        found = read.runs(connection, last, checklist)
        since = found[0].id if found else read.NO_RUN
        kept = {} if checklist and not found else diagnoses(connection, since)
        show("".join(render.list_runs(found, read.changes(connection, since), kept)))
        if not found:
            warn("kdoctor: the history has no runs" + (f" of {checklist}" if checklist else ""))
            return
        show(render.list_flaky(read.flaky(connection)))
        curves = read.trends(connection, found[-1], min(last or _TREND_RUNS, _TREND_RUNS))
        show(render.list_trends(curves, unicode=canvas_for(sys.stdout, os.environ).unicode))


@app.command("show", context_settings=_NUMBERS, epilog="Example: kdoctor history show -1")
def show_(
    run: RunArgument = -1,
    *,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["terminal", "json"], typer.Option("--format", "-f", help="Output format; json is the whole report.")
    ] = "terminal",
) -> None:
    """Show one run: its verdict and the checks that did not pass."""
    with _database() as connection:
        report = read.report_of(connection, run)
    show(json.dumps(report, indent=2) + "\n" if format == "json" else clean(render.show_run(report)), rendered=True)


@app.command("diff", context_settings=_NUMBERS, epilog="Example: kdoctor history diff -2 -1")
def diff(old: RunArgument = -2, new: RunArgument = -1) -> None:
    """Show what changed between two runs."""
    with _database() as connection:
        show(render.diff_runs(read.report_of(connection, old), read.report_of(connection, new)))


@app.command("export", epilog="Example: kdoctor history export > runs.jsonl")
def export() -> None:
    """Write each run as one line of JSON: its report, number, host and scope."""
    with _database() as connection:
        for line in read.export(connection):
            show(line, rendered=True)


def _database() -> AbstractContextManager[sqlite3.Connection]:
    return opened(history_file(os.environ), create=False)
