"""Writes what a run produced: its report to stdout and files, its facts to a snapshot, the run to the history."""

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from kdoctor.cli.options import OUTPUT, format_option
from kdoctor.cli.stderr import show
from kdoctor.commands.again import program
from kdoctor.commands.shell import quoted
from kdoctor.engine.report import Report
from kdoctor.engine.verdict import exit_code_for
from kdoctor.facts import Facts
from kdoctor.history.location import is_off
from kdoctor.history.record import keep
from kdoctor.lock.document import Lock
from kdoctor.output import OutputError, Outputs, write_atomically
from kdoctor.report.formats import FORMATS, render
from kdoctor.run.log import log, style, warn
from kdoctor.snapshot.document import Snapshot, dumps
from kdoctor.text.canvas import PLAIN, canvas_for

ReportFormatOption = Annotated[str | None, format_option(FORMATS, OUTPUT)]


_PIPES = ("/dev/fd/", "/dev/stdin")
_OUTPUT_FLAGS = ("-q", "--quiet", "--verbose")
_OUTPUT_OPTIONS = ("-f", "--format", "-o", "--output", "--fix-script", "--save-snapshot", "--log-format")


def asked_command(arguments: Sequence[str]) -> str:
    """The command of this run without what only says how the report is shown; empty if its input is read only once.

    Args:
        arguments: those of the program, without its name.
    """
    kept: list[str] = []
    is_value = False
    for argument in arguments:
        if is_value:
            is_value = False
        elif argument in _OUTPUT_OPTIONS:
            is_value = True
        elif not (
            argument in _OUTPUT_FLAGS
            or re.fullmatch("-v+", argument)
            or argument.startswith(tuple(f"{name}=" for name in _OUTPUT_OPTIONS if name.startswith("--")))
        ):
            kept.append(argument)
    return "" if any(one == "-" or one.startswith(_PIPES) for one in kept) else quoted(*program(), *kept)


def show_report(report: Report, format: str = "terminal", verbosity: int = 0) -> None:  # noqa: A002 - the option's name
    """Print a report in the colours and width of the terminal."""
    canvas = replace(canvas_for(sys.stdout, os.environ), verbosity=verbosity)
    show(render(report, format, canvas), rendered=True)


def deliver(report: Report, outputs: Outputs, verbosity: int = 0) -> NoReturn:
    """Write the report to its files and to stdout, and end with its exit code.

    Raises:
        OutputError: a file could not be written. The others and stdout have the report.
    """
    failed: OutputError | None = None
    for item in outputs.files:
        try:
            write_atomically(item.path, render(report, item.format, replace(PLAIN, verbosity=verbosity)))
            wrote(item.path)
        except OutputError as error:
            failed = failed or error
    show_report(report, outputs.stdout, verbosity)
    if failed:
        raise failed
    exit_code = exit_code_for(report.verdict, outputs.stdout)
    if style.as_json:
        log(
            "verdict",
            verdict=report.verdict.conclusion.value,
            exit_code=exit_code,
            reason=report.verdict.reason,
            message=render(report, "line").rstrip("\n"),
        )
    raise typer.Exit(exit_code)


def keep_run(report: Report, scope: str, make_lock: Callable[[], Lock] | None = None) -> None:
    """Record the run in the history, if that is on. A failure to do so is a note on stderr."""
    note = None if is_off(os.environ) else keep(report, scope, os.environ, make_lock)
    if note:
        warn(f"kdoctor: {note}")


def wrote(path: Path) -> None:
    """Say on stderr where a file was written."""
    if not style.quiet:
        warn(f"Wrote {path}", level="info", event="wrote")


def save(path: Path | None, facts: Facts) -> None:
    """Write a snapshot to a file, or to stdout."""
    text = dumps(Snapshot.now(facts))
    if path:
        write_atomically(path, text)
        wrote(path)
    else:
        show(text, rendered=True)
