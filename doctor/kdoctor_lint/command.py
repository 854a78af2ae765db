"""``kdoctor lint``."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kdoctor.cli.conflicts import refuse_with
from kdoctor.cli.options import FailOnOption, OutputOption, format_option, option
from kdoctor.cli.stderr import show
from kdoctor.errors import UsageError, did_you_mean
from kdoctor.model import Severity
from kdoctor.output import parse_outputs, write_atomically
from kdoctor.run.log import warn
from kdoctor.text.canvas import PLAIN, canvas_for
from kdoctor.text.lists import counted
from kdoctor_lint import engine
from kdoctor_lint.cache import Cache
from kdoctor_lint.files import find_files
from kdoctor_lint.fixes.sources import Fixed
from kdoctor_lint.model import Rule
from kdoctor_lint.registry import chosen_rules, rule_named
from kdoctor_lint.report.explain import render_rule
from kdoctor_lint.report.formats import FORMATS
from kdoctor_lint.script import STDIN, read_script
from kdoctor_lint.settings import Settings, installed_releases, read_settings


def lint(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Scripts, notebooks or folders; - for stdin.", show_default=False),
    ] = None,
    *,
    select: Annotated[list[str] | None, option("Apply only this rule, such as KD101 or KD1 (repeatable).")] = None,
    ignore: Annotated[list[str] | None, option("Skip this rule (repeatable).")] = None,
    all_rules: Annotated[bool, typer.Option("--all", help="Also apply the rules that only give hints.")] = False,
    python: Annotated[Path | None, option("Interpreter whose TensorFlow and Keras the scripts are for.")] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Fix what can be fixed safely, in place.")] = False,
    unsafe_fixes: Annotated[
        bool,
        typer.Option("--unsafe-fixes", help="With --fix or --diff: fix also where the code may change its effect."),
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Print what --fix would change, and change nothing.")] = False,
    fail_on: FailOnOption = "warning",
    format: Annotated[  # noqa: A002 - the option's name
        str | None, format_option(FORMATS)
    ] = None,
    output: OutputOption = None,
    entry: Annotated[str | None, option("Function of PATH that another file starts, such as main.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Lint files again that have not changed.")] = False,
    explain: Annotated[str | None, option("Explain a rule, with an example.", metavar="RULE")] = None,
) -> None:
    """Find multi-GPU mistakes in training scripts, without a run.

    Rules with severity info apply only with --all, --select or --fail-on info. The table tool.kdoctor.lint in
    pyproject.toml sets select, ignore, per-file-ignores, tensorflow and keras.

    Exit codes: 0 no findings; 1 findings at or above --fail-on, or a file could not be read; 2 usage error,
    such as a path that does not exist. --fix reports what is left. With --diff: 1 if files would change.
    """
    changing = {"--fix": fix, "--format": format, "--output": output}
    if explain is not None:
        others: dict[str, object] = {"PATH": paths, "--select": select, "--ignore": ignore, "--all": all_rules}
        others |= {"--python": python, "--entry": entry, "--diff": diff, **changing}
        refuse_with("--explain", explain, others, why="Run kdoctor lint once for each.")
        show(render_rule(rule_named(explain)))
        return
    refuse_with("--diff", diff, changing, why="--diff prints a diff only.")
    paths = _checked(paths, fix=fix, unsafe=unsafe_fixes and not diff)
    outputs = parse_outputs(output or (), tuple(FORMATS), stdout=format)
    settings = read_settings(Path.cwd())
    if python is not None:
        settings = replace(settings, targets=installed_releases(python))
    if entry is not None:
        settings = replace(settings, entry=_entry(paths, entry))
    left_out = [*(ignore or ()), *(() if select else settings.ignore)]
    selected = select or (() if all_rules else settings.select)
    rules = chosen_rules(selected, left_out, notes=all_rules or fail_on == "info")
    if diff:
        raise typer.Exit(_show_diff(_fixed(paths, rules, settings, unsafe=unsafe_fixes)))
    if fix:
        _write(_fixed(paths, rules, settings, unsafe=unsafe_fixes))
    report = engine.lint(paths, rules, settings, cache=None if no_cache else Cache(os.environ, settings))
    for item in outputs.files:
        write_atomically(item.path, FORMATS[item.format](report, PLAIN))
    if outputs.stdout != "terminal":
        for note in report.notes:
            warn(f"kdoctor: {note}")
    show(FORMATS[outputs.stdout](report, canvas_for(sys.stdout, os.environ)), rendered=True)
    if report.fails(Severity(fail_on)):
        raise typer.Exit(1)


def _checked(paths: list[str] | None, *, fix: bool, unsafe: bool) -> list[str]:
    if not paths:
        raise UsageError("no files or directories given", hint="Example: kdoctor lint train.py notebooks/")
    if unsafe and not fix:
        raise UsageError("--unsafe-fixes has no effect without --fix or --diff")
    if fix and STDIN in paths:
        raise UsageError("--fix cannot change standard input", hint="Use --diff, or name a file.")
    return paths


def _entry(paths: Sequence[str], entry: str) -> str:
    files, _ = find_files([path for path in paths if path != STDIN])
    names = {getattr(node, "name", "") for path in files for node in read_script(path).body}
    if entry not in names:
        raise UsageError(f"--entry: no file that is named has a function {entry!r}{did_you_mean(entry, names)}")
    return entry


def _fixed(paths: Sequence[str], rules: Mapping[str, Rule], settings: Settings, *, unsafe: bool) -> Sequence[Fixed]:
    from kdoctor_lint.fixes.apply import fix_files  # noqa: PLC0415 - LibCST takes as long to import as kdoctor

    return fix_files(paths, rules, settings, unsafe=unsafe)


def _show_diff(fixed: Sequence[Fixed]) -> int:
    """Print what the fixes change. The result is the exit code."""
    show("".join(item.diff() for item in fixed))
    warn(f"kdoctor: would make {_changes(fixed)}" if fixed else "kdoctor: nothing to fix")
    return 1 if fixed else 0


def _write(fixed: Sequence[Fixed]) -> None:
    for item in fixed:
        write_atomically(Path(item.path), item.after)
    warn(f"kdoctor: made {_changes(fixed)}" if fixed else "kdoctor: nothing was fixed")


def _changes(fixed: Sequence[Fixed]) -> str:
    count = sum(item.count for item in fixed)
    return f"{counted(count, 'fix', 'fixes')} in {counted(len(fixed), 'file')}"
