"""``kdoctor lint``."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kdoctor.cli.conflicts import refuse_with
from kdoctor.cli.options import FailOnOption, OutputOption
from kdoctor.cli.stderr import show
from kdoctor.errors import UsageError
from kdoctor.model import Severity
from kdoctor.output import parse_outputs, write_atomically
from kdoctor.run.log import warn
from kdoctor.text.canvas import PLAIN, canvas_for
from kdoctor_lint import engine
from kdoctor_lint.registry import chosen_rules, rule_named
from kdoctor_lint.report.explain import render_rule
from kdoctor_lint.report.formats import FORMATS
from kdoctor_lint.settings import installed_releases, read_settings


def lint(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Scripts, notebooks or folders; - for stdin.", show_default=False),
    ] = None,
    *,
    select: Annotated[
        list[str] | None,
        typer.Option(help="Apply only this rule, such as KD101 or KD1 (repeatable).", show_default=False),
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Skip this rule (repeatable).", show_default=False)] = None,
    all_rules: Annotated[bool, typer.Option("--all", help="Also apply the rules that only give hints.")] = False,
    python: Annotated[
        Path | None,
        typer.Option(help="Interpreter whose TensorFlow and Keras the scripts are for.", show_default=False),
    ] = None,
    fail_on: FailOnOption = "warning",
    format: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option(
            "--format", "-f", metavar="|".join(FORMATS), help="Output format. \\[default: terminal]", show_default=False
        ),
    ] = None,
    output: OutputOption = None,
    explain: Annotated[
        str | None, typer.Option(metavar="RULE", help="Explain a rule, with an example.", show_default=False)
    ] = None,
) -> None:
    """Lint training scripts for common multi-GPU mistakes, without running them.

    Rules with severity info apply only with --all, --select or --fail-on info. `[tool.kdoctor.lint]` in
    pyproject.toml sets select, ignore and per-file-ignores.

    Exit codes: 0 no findings; 1 findings at or above --fail-on, or a file could not be read; 2 usage error,
    such as a path that does not exist.
    """
    if explain is not None:
        others: dict[str, object] = {
            "PATH": paths,
            "--select": select,
            "--ignore": ignore,
            "--all": all_rules,
            "--python": python,
        }
        others |= {"--format": format, "--output": output}
        refuse_with("--explain", explain, others, why="Run kdoctor lint once for each.")
        show(render_rule(rule_named(explain)))
        return
    if not paths:
        raise UsageError("no files or directories given", hint="Example: kdoctor lint train.py notebooks/")
    outputs = parse_outputs(output or (), tuple(FORMATS), stdout=format)
    settings = read_settings(Path.cwd())
    if python is not None:
        settings = replace(settings, targets=installed_releases(python))
    left_out = [*(ignore or ()), *(() if select else settings.ignore)]
    selected = select or (() if all_rules else settings.select)
    rules = chosen_rules(selected, left_out, notes=all_rules or fail_on == "info")
    report = engine.lint(paths, rules, settings)
    for item in outputs.files:
        write_atomically(item.path, FORMATS[item.format](report, PLAIN))
    if outputs.stdout != "terminal":
        for note in report.notes:
            warn(f"kdoctor: {note}")
    show(FORMATS[outputs.stdout](report, canvas_for(sys.stdout, os.environ)), rendered=True)
    if report.fails(Severity(fail_on)):
        raise typer.Exit(1)
