"""``kdoctor history``."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import typer

from kdoctor.cli.plain import PlainCommand, PlainGroup
from kdoctor.cli.stderr import complain, show
from kdoctor.engine.report import Report
from kdoctor.errors import UsageError
from kdoctor.history import read
from kdoctor.history import render as words
from kdoctor.history.last_passing import Series, last_green
from kdoctor.history.location import history_file, is_off
from kdoctor.history.record import keep
from kdoctor.history.store import opened
from kdoctor.lock.document import Lock
from kdoctor.text.canvas import canvas_for


class _ListsAlone(PlainGroup):
    """Without a command it lists: ``kdoctor history --last 5`` is ``kdoctor history list --last 5``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command there that was meant."""
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_ListsAlone,
    help="Every run on this machine: verdicts, what changed, flaky checks, trends.",
    epilog="Example: kdoctor history --last 50",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_NUMBERS = {"ignore_unknown_options": True}  # a run's number may be negative, to count from the newest

RunArgument = Annotated[int, typer.Argument(metavar="RUN", help="A run's number; -1 is the newest.")]


@app.command("list", cls=PlainCommand, epilog="Example: kdoctor history --last 50")
def list_(
    *,
    last: Annotated[
        str, typer.Option("--last", "-n", metavar="N", help="So many of the newest runs; 0 for all.")
    ] = "20",
    checklist: Annotated[
        str | None, typer.Option("--checklist", "-c", help="Only runs of this checklist.", show_default=False)
    ] = None,
) -> None:
    """List the runs, what changed between them, the first red after green, flaky checks, and trends."""
    number = _number(last)

    with _database() as connection:
        found = read.runs(connection, number, checklist)
        if not found:
            complain("kdoctor: there are no runs in the history" + (f" of {checklist}" if checklist else " yet"))
            return
        show("".join(words.list_runs(found, read.changes(connection, found[0].id))))
        show(words.list_flaky(read.flaky(connection)))
        curves = read.trends(connection, found[-1], min(number or 40, 40))
        show(words.list_trends(curves, unicode=canvas_for(sys.stdout, os.environ).unicode))


@app.command("show", context_settings=_NUMBERS, epilog="Example: kdoctor history show -1")
def show_(
    run: RunArgument,
    *,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["terminal", "json"], typer.Option("--format", "-f", help="json is the whole report.")
    ] = "terminal",
) -> None:
    """Show one run: its verdict, and what did not pass."""
    with _database() as connection:
        report = read.report_of(connection, run)
    show(json.dumps(report, indent=2) + "\n" if format == "json" else words.show_run(report))


@app.command("diff", context_settings=_NUMBERS, epilog="Example: kdoctor history diff -2 -1")
def diff(old: RunArgument, new: RunArgument) -> None:
    """Say what is otherwise in the second run."""
    with _database() as connection:
        show(words.diff_runs(read.report_of(connection, old), read.report_of(connection, new)))


@app.command("export", epilog="Example: kdoctor history export > runs.jsonl")
def export() -> None:
    """Write every run as one line of JSON: its report, with its number, host and scope."""
    with _database() as connection:
        for line in read.export(connection):
            show(line)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"--last {text}: this is no number of runs", hint="For example --last 50; 0 for all.")
    return int(text[:9])


@contextmanager
def _database() -> Iterator[sqlite3.Connection]:
    with opened(history_file(os.environ), create=False) as connection:
        yield connection


def last_green_run(report: Report) -> tuple[Lock | None, str]:
    """What the last green run of the same host, checklist and interpreter found, and its name; None without one."""
    if is_off(os.environ):
        return None, ""

    target = report.target.partition(" (")[0]
    series = Series(host=platform.node(), checklist=report.checklist.name, target=target)
    try:
        with opened(history_file(os.environ), create=False) as connection:
            name, lock = last_green(connection, series)
    except UsageError:  # the report is no place for the history's troubles; keeping this run tells them
        return None, ""
    return lock, name


def keep_run(report: Report, scope: str, *, wanted: bool, found: Callable[[], Lock] | None = None) -> Report:
    """Keep the run, unless nobody wants it; a note on stderr where that fails. The report learns the last green.

    ``found`` makes a lock of what the run found, for the way back; it is asked for a green and whole run.
    """
    if not wanted or is_off(os.environ):
        return report

    told, note = keep(report, scope, os.environ, found)
    if note:
        complain(f"kdoctor: {note}")
    return told
