"""``kdoctor checklist``."""

from __future__ import annotations

import datetime as dt
import getpass
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kdoctor.checklist.init import draft
from kdoctor.checklist.load import load_checklist, read_text
from kdoctor.checklist.problems import ChecklistError
from kdoctor.checklist.text import plain_text, resolved_text
from kdoctor.cli.options import (
    DEFAULT_CHECKLIST,
    DEFAULT_TIMEOUT_S,
    LockOption,
    PluginOption,
    PythonOption,
    ReplicasOption,
    TimeoutOption,
)
from kdoctor.cli.plain import PlainCommand, PlainGroup
from kdoctor.cli.stderr import complain, show
from kdoctor.diff.compare import all_new, compare
from kdoctor.diff.git import compare_as_git_asks
from kdoctor.diff.model import KINDS
from kdoctor.diff.render import FORMATS, render_diff
from kdoctor.diff.sources import Git, from_files, from_git
from kdoctor.engine.catalog import Catalog, load_catalog
from kdoctor.engine.exit_codes import EXIT_USAGE
from kdoctor.errors import UsageError, did_you_mean, one_of
from kdoctor.lock.document import Accepted, Lock, LockError, NewerLockError, loads, lock_error
from kdoctor.lock.facts import recorded_facts
from kdoctor.lock.record import make_lock, not_green
from kdoctor.lock.store import lock_path, write_lock
from kdoctor.output import check_writable, write_atomically
from kdoctor.probes.process.child import ChildEnd, Children
from kdoctor.report.formats import render
from kdoctor.run.assemble import RunNote, assess
from kdoctor.run.plan import Wanted, see, trainings
from kdoctor.text.canvas import canvas_for

app = typer.Typer(
    cls=PlainGroup,
    help="Write, validate, record and compare checklists.",
    epilog="Example: kdoctor checklist validate ci/gpu-node.yaml",
    no_args_is_help=True,
)


@app.command(name="show", epilog="Example: kdoctor checklist show multi-gpu-keras > my-node.yaml")
def print_(
    checklist: Annotated[str, typer.Argument(metavar="FILE", help="Name or path of a checklist.")] = DEFAULT_CHECKLIST,
    *,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="With all that it extends, and what it says otherwise.")
    ] = False,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="Sorted and without comments, for comparing (git's textconv); anything else as it is."
        ),
    ] = False,
    plugin: PluginOption = None,
) -> None:
    """Print a checklist as it is written, if it is valid: the start of your own."""
    catalog = load_catalog(plugin or ())
    try:
        chosen = load_checklist(checklist, catalog)
    except ChecklistError as error:
        if not plain or not Path(checklist).is_file():
            raise
        # git ends the whole `git log -p` where a textconv fails, and of a lock or an older version it wants the text.
        text = Path(checklist).read_text(encoding="utf-8", errors="replace")
        if "schema: kdoctor/lock/" not in text:  # a lock has one fact a line already
            complain(f"kdoctor: {error}\nIt is shown as it is written.")
        show(text)
        return
    if plain:
        show(plain_text(chosen))
    else:
        show(resolved_text(chosen) if resolved else read_text(checklist, catalog))


@app.command(epilog="Example: kdoctor checklist validate ci/gpu-node.yaml", cls=PlainCommand)
def validate(
    checklist: Annotated[list[str], typer.Argument(metavar="FILE", help="Names or paths of checklists.")],
    *,
    plugin: PluginOption = None,
) -> None:
    """Say every mistake in checklists with its line and column; nothing is run. Exit code 2 if there is one."""
    catalog = load_catalog(plugin or ())
    broken = False
    for name in checklist:
        try:
            read = load_checklist(name, catalog)
        except ChecklistError as error:
            complain(str(error))
            broken = True
        else:
            typer.echo(
                f"{name}: valid ({read.name} version {read.version}: "
                f"{len(read.entries)} checks, {len(read.scenarios)} scenarios)"
            )
    raise typer.Exit(EXIT_USAGE if broken else 0)


@app.command(epilog="Example: kdoctor checklist init ci/gpu-node.yaml --owner ml-platform")
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; its stem becomes the name.")],
    *,
    owner: Annotated[str | None, typer.Option(help="Who owns it; you, unless given.", show_default=False)] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    python: PythonOption = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="Ask this recorded snapshot, not this machine.", show_default=False)
    ] = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
    plugin: PluginOption = None,
) -> None:
    """Ask the machine, and write a first checklist of your own, with comments. Nothing is trained."""
    if os.path.lexists(file) and not force:
        raise UsageError(f"{file} is there, and stays as it is", hint="Name another file, or replace it with --force")
    check_writable(file)
    name = re.sub(r"[^a-z0-9]+", "-", file.name.partition(".")[0].lower()).strip("-") or "job"
    catalog = load_catalog(plugin or ())
    facts = see(catalog, snapshot, python, timeout).facts
    write_atomically(file, draft(facts, catalog, name=name, owner=owner or _user()))
    show(f"{file}: written. Go through it, then: kdoctor check --checklist {file}\n")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "the owner of this machine"


@app.command(epilog="Example: kdoctor checklist record ci/gpu-node.yaml && git add ci/gpu-node.lock.yaml")
def record(
    checklist: Annotated[str, typer.Argument(metavar="FILE", help="Name or path of a checklist.")] = DEFAULT_CHECKLIST,
    *,
    lock: LockOption = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(help="Id of a check that may be red this once, reviewed (repeatable).", show_default=False),
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why that is accepted.", show_default=False)] = None,
    with_identifiers: Annotated[
        bool, typer.Option("--with-identifiers", help="Record serial numbers, paths and job names, too.")
    ] = False,
    slower: Annotated[
        float, typer.Option(min=1.01, metavar="TIMES", help="A training's step this many times slower is drift.")
    ] = 2.0,
    python: PythonOption = None,
    replicas: ReplicasOption = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="Record this snapshot instead of this machine.", show_default=False)
    ] = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
    plugin: PluginOption = None,
) -> None:
    """Run the checks and, if all is green, write what was found to NAME.lock.yaml beside the checklist.

    A red run is not recorded, and the old lock stays. Exit codes: 0 recorded; 1 or 3 not green; 2 wrong usage.
    """
    started, started_at = time.monotonic(), dt.datetime.now(dt.timezone.utc)
    catalog = load_catalog(plugin or ())
    accepted = _accepted(accept or [], reason, catalog)
    chosen, planned = Wanted(checklist=checklist).plan(catalog)
    path = lock or lock_path(chosen)
    check_writable(path)
    before, previous = _previous(path, chosen.name)
    seen = see(catalog, snapshot, python, timeout, trainings(chosen, planned, replicas))
    facts = seen.facts
    # The lock bears the date of the evidence.
    when = _taken(snapshot) if snapshot else started_at.isoformat(timespec="seconds")
    taken_s = time.monotonic() - started
    note = RunNote(target=seen.target, started_at=started_at, duration_s=taken_s, interrupted=seen.interrupted)
    report = assess(facts, chosen, planned, chosen.rules(today=started_at.date()), note)
    why_not = not_green(report, accepted)
    if why_not:
        show(render(report, "terminal", canvas_for(sys.stdout, os.environ)))
        complain(f"kdoctor: nothing was recorded: {why_not}")
        raise typer.Exit(report.verdict.exit_code or 1)
    found = recorded_facts(facts, identifiers=with_identifiers, slower=slower)
    made = make_lock(chosen, replace(report, started_at=when), found, accepted=accepted, previous=previous)
    for item in accepted:
        if item not in made.accepted:
            complain(f"kdoctor: {item.check} was not red, so there was nothing to accept")
    write_lock(path, made, before)
    show(f"{path}: recorded ({chosen.name} version {chosen.version}, {sum(map(len, made.facts.values()))} facts)\n")


@app.command(
    epilog="Example: kdoctor checklist diff ci/gpu-node.yaml --base origin/main --fail-on loosened", cls=PlainCommand
)
def diff(
    checklists: Annotated[
        list[str], typer.Argument(metavar="FILE", help="The old one and the new one; with --base the new one.")
    ],
    *,
    base: Annotated[
        str | None, typer.Option(metavar="REV", help="Compare with what git has in REV.", show_default=False)
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        str, typer.Option("--format", "-f", metavar="terminal|markdown|json", help="What stdout carries.")
    ] = "terminal",
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="loosened|tightened|moved", help="Exit with 1 if there is such a change.", show_default=False
        ),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Say what a change of a checklist means: loosened, tightened, moved or cosmetic; with the locks beside them."""
    wanted_format = one_of("--format", format, FORMATS)
    failing = one_of("--fail-on", fail_on, KINDS[:-1]) if fail_on else None
    if len(checklists) != (1 if base else 2):
        wanted = "--base takes one checklist, the new one" if base else "give two checklists, or one with --base REV"
        raise UsageError(f"{len(checklists)} checklists are named: {wanted}")
    catalog = load_catalog(plugin or ())
    new = from_files(checklists[-1], catalog)
    if base:
        old = from_git(base, Path(checklists[0]), catalog, _git())
        if old is None:
            complain(f"kdoctor: {checklists[0]} is not in {base}: the whole checklist is new")
            if wanted_format != "terminal":
                show(render_diff(all_new(new, base), wanted_format))
            return
    else:
        old = from_files(checklists[0], catalog)
    found = compare(old, new)
    show(render_diff(found, wanted_format))
    raise typer.Exit(1 if failing and found.of(failing) else 0)


@app.command(name="git-diff", epilog="Set up: git config diff.kdoctor.command 'kdoctor checklist git-diff'")
def git_diff(
    arguments: Annotated[list[str], typer.Argument(metavar="GIT'S ARGUMENTS", help="As git hands them over.")],
) -> None:
    """Be git's external diff for checklists and locks (see docs/checklist.md)."""
    path = arguments[0]
    if len(arguments) == 1:
        show(f"{path}: unmerged\n")
        return
    if len(arguments) < 7:  # noqa: PLR2004 - path, and file, hash and mode of both sides
        raise UsageError("git hands 7 arguments to an external diff; run it through git (see docs/checklist.md)")
    try:
        found = compare_as_git_asks(path, Path(arguments[1]), Path(arguments[4]), load_catalog())
    except UsageError as error:
        # An external diff that fails ends the whole `git diff`.
        show(f"{path}: {error}\n")
        return
    show(found if isinstance(found, str) else render_diff(found, "terminal"))


def _git() -> Git:
    """Runs git where children are started: with a deadline, and ended with us."""
    children = Children()
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}

    def run(arguments: Sequence[str]) -> ChildEnd:
        return children.run(["git", *arguments], env=environ, deadline_s=30)

    return run


def _taken(snapshot: Path) -> str:
    """When a snapshot was taken, as it says; it was read before, so it is a good one."""
    return str(json.loads(snapshot.read_text(encoding="utf-8-sig"))["created_at"])


def _accepted(ids: list[str], reason: str | None, catalog: Catalog) -> list[Accepted]:
    if ids and not (reason and reason.strip()):
        raise UsageError("--accept needs a --reason: the lock is reviewed, and says why")
    if reason and not ids:
        raise UsageError("--reason is given, but no --accept: name the check that may be red")
    for check_id in ids:
        if check_id not in catalog.checks:
            raise UsageError(f"--accept {check_id}: there is no such check{did_you_mean(check_id, catalog.checks)}")
    return [Accepted(check=check_id, reason=(reason or "").strip()) for check_id in dict.fromkeys(ids)]


def _previous(path: Path, name: str) -> tuple[bytes | None, Lock | None]:
    """What stands at the lock's place now: its bytes, and the lock if it is a good one of that checklist."""
    if not path.exists():
        return None, None
    before = path.read_bytes()
    try:
        previous = loads(before, str(path))
    except NewerLockError:
        raise
    except LockError as error:
        complain(f"kdoctor: {error.message}; it is replaced if the run is green")
        return before, None
    if previous.checklist != name:
        message = f"lock of checklist {previous.checklist!r}, expected {name!r}"
        raise lock_error(path, message, "Name another file with --lock, or remove that one")
    return before, previous
