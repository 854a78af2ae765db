"""``kdoctor checklist``."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from kdoctor.checklist.init import draft
from kdoctor.checklist.load import load_checklist, read_text
from kdoctor.checklist.problems import ChecklistError
from kdoctor.checklist.text import plain_text, resolved_text
from kdoctor.cli.options import (
    DEFAULT_CHECKLIST,
    DEFAULT_TIMEOUT_S,
    PluginOption,
    PythonOption,
    SnapshotOption,
    TimeoutOption,
)
from kdoctor.cli.record import record
from kdoctor.cli.stderr import show
from kdoctor.diff.compare import all_new, compare
from kdoctor.diff.git import compare_as_git_asks
from kdoctor.diff.render import render_diff
from kdoctor.diff.sources import Git, from_files, from_git
from kdoctor.engine.catalog import load_catalog
from kdoctor.engine.exit_codes import EXIT_USAGE
from kdoctor.errors import UsageError
from kdoctor.output import check_writable, write_atomically
from kdoctor.probes.process.child import ChildEnd, Children
from kdoctor.run.log import warn
from kdoctor.run.session import collect

_GIT_ARGUMENTS = 7
"""Path, and file, hash and mode of both sides."""

app = typer.Typer(
    help="Write, validate, record and compare checklists.",
    epilog="Example: kdoctor checklist validate ci/gpu-node.yaml",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(name="show", epilog="Example: kdoctor checklist show multi-gpu-keras > my-node.yaml")
def show_(
    checklist: Annotated[str, typer.Argument(metavar="FILE", help="Name or path of a checklist.")] = DEFAULT_CHECKLIST,
    *,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Merge all parent checklists and show what is overridden.")
    ] = False,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="Print it sorted and without comments (git's textconv). Invalid files are printed as is."
        ),
    ] = False,
    plugin: PluginOption = None,
) -> None:
    """Print a checklist, as a starting point for yours."""
    catalog = load_catalog(plugin or ())
    try:
        chosen = load_checklist(checklist, catalog)
    except ChecklistError as error:
        if not plain or not Path(checklist).is_file():
            raise
        # A textconv must not fail, or git ends the whole `git log -p`.
        text = Path(checklist).read_text(encoding="utf-8", errors="replace")
        if "schema: kdoctor/lock/" not in text:  # a lock has one fact a line already
            warn(f"kdoctor: {error}\nIt is printed as is.")
        show(text)
        return
    if plain:
        show(plain_text(chosen))
    else:
        show(resolved_text(chosen) if resolved else read_text(checklist, catalog))


@app.command(epilog="Example: kdoctor checklist validate ci/gpu-node.yaml")
def validate(
    checklist: Annotated[list[str], typer.Argument(metavar="FILE", help="Names or paths of checklists.")],
    *,
    plugin: PluginOption = None,
) -> None:
    """Validate checklists and report errors with line and column. Exits with 2 if any are found."""
    catalog = load_catalog(plugin or ())
    broken = False
    for name in checklist:
        try:
            read = load_checklist(name, catalog)
        except ChecklistError as error:
            warn(str(error))
            broken = True
        else:
            typer.echo(
                f"{name}: valid ({read.name} version {read.version}: "
                f"{len(read.entries)} checks, {len(read.scenarios)} scenarios)"
            )
    raise typer.Exit(EXIT_USAGE if broken else 0)


@app.command(epilog="Example: kdoctor checklist init ci/gpu-node.yaml --owner ml-platform")
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; its stem is the checklist's name.")],
    *,
    owner: Annotated[str | None, typer.Option(help="Owner. [default: your user name]", show_default=False)] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    python: PythonOption = None,
    snapshot: SnapshotOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
    plugin: PluginOption = None,
) -> None:
    """Generate a commented checklist from this machine's current state, without running any training."""
    if os.path.lexists(file) and not force:
        raise UsageError(f"{file} already exists", hint="Use --force to overwrite it.")
    check_writable(file)
    name = re.sub(r"[^a-z0-9]+", "-", file.name.partition(".")[0].lower()).strip("-") or "job"
    catalog = load_catalog(plugin or ())
    facts = collect(catalog, snapshot, python, timeout).facts
    write_atomically(file, draft(facts, catalog, name=name, owner=owner or _user()))
    show(f"Wrote {file}. Review it, then run: kdoctor check --checklist {file}\n")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "the owner of this machine"


app.command(epilog="Example: kdoctor checklist record ci/gpu-node.yaml && git add ci/gpu-node.lock.yaml")(record)


@app.command(epilog="Example: kdoctor checklist diff ci/gpu-node.yaml --base origin/main --fail-on loosened")
def diff(
    checklists: Annotated[
        list[str], typer.Argument(metavar="FILE", help="The old and the new checklist; with --base only the new one.")
    ],
    *,
    base: Annotated[
        str | None, typer.Option(metavar="REV", help="Compare with this revision in git.", show_default=False)
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["terminal", "markdown", "json"], typer.Option("--format", "-f", help="Output format.")
    ] = "terminal",
    fail_on: Annotated[
        Literal["loosened", "tightened", "moved"] | None,
        typer.Option(help="Exit with 1 if there is such a change.", show_default=False),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Compare checklists and their locks: what is loosened, tightened, moved or cosmetic."""
    if len(checklists) != (1 if base else 2):
        wanted = "one checklist with --base" if base else "two checklists, or one with --base REV"
        raise UsageError(f"expected {wanted}, got {len(checklists)}")
    catalog = load_catalog(plugin or ())
    new = from_files(checklists[-1], catalog)
    if base:
        old = from_git(base, Path(checklists[0]), catalog, _git())
        if old is None:
            warn(f"kdoctor: {checklists[0]} is not in {base}: the whole checklist is new")
            if format != "terminal":
                show(render_diff(all_new(new, base), format))
            return
    else:
        old = from_files(checklists[0], catalog)
    found = compare(old, new)
    show(render_diff(found, format))
    raise typer.Exit(1 if fail_on and found.of(fail_on) else 0)


@app.command(name="git-diff", epilog="Set up: git config diff.kdoctor.command 'kdoctor checklist git-diff'")
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
    except UsageError as error:  # if an external diff fails, so does the whole `git diff`
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
