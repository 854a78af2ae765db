"""``kdoctor lint``."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from kdoctor.cli.options import FailOnOption, OutputOption
from kdoctor.cli.stderr import complain, show
from kdoctor.errors import UsageError
from kdoctor.model import Severity
from kdoctor.output import parse_outputs, write_atomically
from kdoctor.text.canvas import canvas_for
from kdoctor_lint.engine import lint as look_at
from kdoctor_lint.report import FORMATS, render
from kdoctor_lint.report.words import explain as words_about
from kdoctor_lint.rules import chosen_rules, rule_named

_FORMATS = "terminal|json|sarif|github"


def lint(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Scripts, notebooks, folders of them; - for stdin.", show_default=False),
    ] = None,
    *,
    select: Annotated[list[str] | None, typer.Option(help="Only these rules (repeatable).", show_default=False)] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Not these rules (repeatable).", show_default=False)] = None,
    fail_on: FailOnOption = "warning",
    format: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option(
            "--format", "-f", metavar=_FORMATS, help="What stdout carries: terminal, unless given.", show_default=False
        ),
    ] = None,
    output: OutputOption = None,
    explain: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="Say what a rule is about, and how to write it right.", show_default=False),
    ] = None,
) -> None:
    """Lint training scripts for common multi-GPU mistakes, without running them.

    Exit codes: 0 clean; 1 a finding at or over --fail-on, or a file that cannot be read; 2 wrong usage.
    """
    if explain is not None:
        show(words_about(rule_named(explain)))
        return
    if not paths:
        raise UsageError("name what to look at", hint="For example: kdoctor lint train.py notebooks/")
    outputs = parse_outputs(output or (), FORMATS, stdout=format)
    report = look_at(paths, chosen_rules(select or (), ignore or ()))
    for item in outputs.files:
        write_atomically(item.path, render(report, item.format))
    if outputs.stdout != "terminal":
        for note in report.notes:
            complain(f"kdoctor: {note}")
    show(render(report, outputs.stdout, canvas_for(sys.stdout, os.environ)))
    if report.fails(Severity(fail_on)):
        raise typer.Exit(1)
