"""``kdoctor checklist show``, ``validate`` and ``init``."""

import datetime as dt
import getpass
import os
from pathlib import Path
from typing import Annotated

import typer

from kdoctor.catalog.load import load_catalog
from kdoctor.checklist.init import draft
from kdoctor.checklist.load import load_checklist, read_text
from kdoctor.checklist.problems import ChecklistError
from kdoctor.checklist.text import plain_text, resolved_text
from kdoctor.cli import options
from kdoctor.cli.conflicts import SNAPSHOT_IS_USED, refuse_with
from kdoctor.cli.options import option
from kdoctor.cli.stderr import show
from kdoctor.commands.shell import quoted
from kdoctor.engine.exit_codes import EXIT_USAGE
from kdoctor.errors import UsageError
from kdoctor.inputs import read_bounded
from kdoctor.lock.store import is_lock, read_lock
from kdoctor.output import check_writable, write_atomically
from kdoctor.run.assemble import describe_target
from kdoctor.run.collect import collect
from kdoctor.run.log import warn
from kdoctor.text.lists import counted
from kdoctor.yamldoc.problems import DocumentError


def show_(
    checklist: options.ChecklistArgument = options.DEFAULT_CHECKLIST,
    *,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Merge all parent checklists and show what is overridden.")
    ] = False,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="Print it sorted and without comments, for git's textconv. Invalid files are printed as is."
        ),
    ] = False,
    plugin: options.PluginOption = None,
) -> None:
    """Print a checklist, as a starting point for yours."""
    refuse_with("--plain", plain, {"--resolved": resolved}, why="--plain merges parent checklists, too.")
    catalog = load_catalog(plugin or ())
    try:
        chosen = load_checklist(checklist, catalog)
    except ChecklistError as error:
        if not plain or not os.path.isfile(checklist):  # noqa: PTH113 - it never raises
            raise
        # A textconv must not fail, or git ends the whole `git log -p`.
        text = read_bounded(Path(checklist)).decode("utf-8", "replace")
        if "schema: kdoctor/lock/" not in text:  # a lock has one fact a line already
            warn(f"kdoctor: {error}\nIt is printed as is.")
        show(text, document=True)
        return
    if plain:
        show(plain_text(chosen), document=True)
    else:
        show(resolved_text(chosen) if resolved else read_text(checklist, catalog), document=True)


def validate(
    checklist: Annotated[list[str], typer.Argument(metavar="FILE", help="Names or paths of checklists.")],
    *,
    plugin: options.PluginOption = None,
) -> None:
    """Validate checklists and locks, and report errors with line and column. Exits with 2 if any are found."""
    catalog = load_catalog(plugin or ())
    broken = False
    for name in checklist:
        try:
            if os.path.isfile(name) and is_lock(Path(name)):  # noqa: PTH113 - it never raises
                lock = read_lock(Path(name))
                show(
                    f"{name}: valid (lock of {lock.checklist} version {lock.version}, recorded {lock.recorded[:10]})\n"
                )
                continue
            read = load_checklist(name, catalog)
        except DocumentError as error:
            warn(f"kdoctor: {error}")
            broken = True
        else:
            today = dt.datetime.now(dt.timezone.utc).date()
            for waiver in (one for one in read.waivers if one.expires < today):
                warn(f"kdoctor: {name}: the waiver of {waiver.check} expired on {waiver.expires}")
            show(
                f"{name}: valid ({read.name} version {read.version}: "
                f"{counted(len(read.entries), 'check')}, {counted(len(read.scenarios), 'scenario')})\n"
            )
    raise typer.Exit(EXIT_USAGE if broken else 0)


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; its stem is the checklist's name.")],
    *,
    owner: Annotated[str | None, option("Owner of the checklist. \\[default: your user name]")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="List every check and training instead of extending a shipped checklist.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    python: options.PythonOption = None,
    snapshot: options.SnapshotOption = None,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT_S,
    plugin: options.PluginOption = None,
) -> None:
    """Generate a commented checklist from this machine's current state, without running any training.

    It extends a shipped checklist, so that it gets the checks of later versions of kdoctor.
    """
    refuse_with("--snapshot", snapshot, {"--python": python}, why=SNAPSHOT_IS_USED)
    if os.path.lexists(file) and not force:
        raise UsageError(f"{file} already exists", hint="Use --force to overwrite it.")
    catalog = load_catalog(plugin or ())
    if str(file) in catalog.checklists:
        hint = f"Give it an ending: {quoted('kdoctor', 'checklist', 'init', f'{file}.yaml')}"
        raise UsageError(f"{file}: a shipped checklist has that name", hint=hint)
    check_writable(file, create_folder=True)
    facts = collect(catalog, snapshot, python, timeout).facts
    write_atomically(file, draft(facts, catalog, file=file, owner=owner or _user(), full=full))
    given = [("--python", python), ("--snapshot", snapshot), *(("--plugin", name) for name in plugin or ())]
    same = [word for flag, value in given if value for word in (flag, str(value))]
    again = quoted("kdoctor", "check", "--checklist", str(file), *same)
    show(f"Wrote {file}, from {describe_target(facts, str(snapshot))}.\nReview it, then run: {again}\n")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "the owner of this machine"
