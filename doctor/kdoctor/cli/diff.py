"""``kdoctor checklist diff`` and ``git-diff``."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

from kdoctor.catalog.load import load_catalog
from kdoctor.checklist.load import is_path
from kdoctor.cli.options import PluginOption, option
from kdoctor.cli.stderr import show
from kdoctor.commands.again import in_same_environment
from kdoctor.commands.shell import quoted
from kdoctor.diff.compare import all_new, all_shipped, compare, compare_locks
from kdoctor.diff.git import compare_as_git_asks
from kdoctor.diff.model import Comparison, Kind
from kdoctor.diff.render import Format, render_diff
from kdoctor.diff.sources import Git, from_files, from_git
from kdoctor.errors import UsageError, near_miss
from kdoctor.history.last_passing import last_target
from kdoctor.lock.store import is_lock, read_lock
from kdoctor.probes.process.child import ChildEnd, Children
from kdoctor.run.log import warn

_GIT_ARGUMENTS = 7
"""Path, and file, hash and mode of both sides."""


def diff(
    checklists: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Old and new checklist or lock; with --base only the new checklist."),
    ],
    *,
    base: Annotated[str | None, option("Compare with this revision in git.", metavar="REV")] = None,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["terminal", "markdown", "json"], typer.Option("--format", "-f", help="Output format.")
    ] = "terminal",
    fail_on: Annotated[
        Literal["loosened", "tightened", "moved"] | None, option("Exit with 1 if there is such a change.")
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Compare checklists and their locks: what is loosened, tightened, moved or cosmetic."""
    if len(checklists) != (1 if base else 2):
        wanted = "one checklist with --base" if base else "two checklists, or one with --base REV"
        example = quoted("kdoctor", "checklist", "diff", *(checklists[:1] or ["node.yaml"]), "--base", base or "HEAD")
        raise UsageError(f"expected {wanted}, got {len(checklists)}", hint=f"Example: {example}")
    files = [Path(name) for name in checklists if os.path.isfile(name)]  # noqa: PTH113 - it never raises
    if not base and len(files) == len(checklists) and all(map(is_lock, files)):
        old_lock, new_lock = map(read_lock, files)
        _finish(compare_locks(old_lock, new_lock, *checklists), format, fail_on)
    revision, colon, name = checklists[0].partition(":")
    catalog = load_catalog(plugin or ())
    if not (base or colon or is_path(revision, catalog) or near_miss(revision, catalog.checklists)):
        colon, name = ":", checklists[1]
    if colon and os.path.isfile(name) and not os.path.exists(checklists[0]):  # noqa: PTH110, PTH113 - they never raise
        hint = f"To compare with a revision in git: {quoted('kdoctor', 'checklist', 'diff', name, '--base', revision)}"
        raise UsageError(f"{checklists[0]}: no such file", hint=hint)
    new = from_files(checklists[-1], catalog)
    if base and new.checklist.source == "shipped":
        _finish(all_shipped(new, base), format, fail_on)
    if base:
        old = from_git(base, Path(checklists[0]), catalog, _git())
        if old is None:
            warn(f"kdoctor: {checklists[0]} is not in {base}: the whole checklist is new")
            if format != "terminal":
                show(render_diff(all_new(new, base), format), rendered=True)
            return
    else:
        old = from_files(checklists[0], catalog)
    found = compare(old, new)
    examined = shutil.which(last_target(os.environ, new.checklist.name))
    notes = [in_same_environment(note, ["--python", examined]) if examined else note for note in found.notes]
    _finish(replace(found, notes=tuple(notes)), format, fail_on)


def _finish(found: Comparison, format: Format, fail_on: Kind | None) -> NoReturn:  # noqa: A002 - the option's name
    show(render_diff(found, format), rendered=True)
    raise typer.Exit(1 if fail_on and found.of(fail_on) else 0)


def git_diff(
    arguments: Annotated[list[str], typer.Argument(metavar="ARGUMENTS", help="The arguments that git passes.")],
) -> None:
    """External diff driver for git (see docs/checklist.md)."""
    path = arguments[0]
    if len(arguments) == 1:
        show(f"{path}: unmerged\n")
        return
    if len(arguments) < _GIT_ARGUMENTS:
        raise UsageError(f"expected {_GIT_ARGUMENTS} arguments, got {len(arguments)}", hint="Run it through git diff.")
    try:
        found = compare_as_git_asks(path, Path(arguments[1]), Path(arguments[4]), load_catalog())
    except (UsageError, OSError) as error:  # if an external diff fails, so does the whole `git diff`
        show(f"{path}: {error}\n")
        return
    show(found if isinstance(found, str) else render_diff(found, "terminal"))


def _git() -> Git:
    """Runs git as a child process with a deadline."""
    children = Children()
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}

    def run(arguments: Sequence[str]) -> ChildEnd:
        return children.run(["git", *arguments], env=environ, deadline_s=30)

    return run
