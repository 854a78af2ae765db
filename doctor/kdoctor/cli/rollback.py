"""``kdoctor rollback``."""

import os
import platform
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from kdoctor.catalog.load import Catalog, load_catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.plan import plan as plan_checks
from kdoctor.checklist.resolve import Checklist
from kdoctor.cli import options
from kdoctor.cli.conflicts import SNAPSHOT_IS_USED, refuse_with
from kdoctor.cli.deliver import show_report, wrote
from kdoctor.cli.options import option
from kdoctor.cli.stderr import show
from kdoctor.commands.shell import quoted
from kdoctor.errors import UsageError, about_missing_file, did_you_mean
from kdoctor.facts import Facts, Target
from kdoctor.history.last_passing import Series, last_passing
from kdoctor.history.location import history_file
from kdoctor.history.store import opened
from kdoctor.lock.document import Lock
from kdoctor.lock.facts import recorded_facts
from kdoctor.lock.store import SUFFIX, load_lock
from kdoctor.output import write_atomically
from kdoctor.probes.process.child import Children
from kdoctor.probes.process.run_folder import run_folder
from kdoctor.probes.target import choose_target
from kdoctor.rollback.installers import read_installation
from kdoctor.rollback.plan import plan_rollback
from kdoctor.rollback.rebuild import RebuildError, base_python, rebuild
from kdoctor.rollback.render import as_script, as_text
from kdoctor.rollback.verify import for_environment, restore_variables
from kdoctor.run.assemble import build_report
from kdoctor.run.collect import collect
from kdoctor.run.interrupts import treat_ends_as_interrupts
from kdoctor.run.log import warn
from kdoctor.run.plan import Plan, today, with_matrix
from kdoctor.run.progress import progress
from kdoctor.run.session import examination
from kdoctor.text.lists import counted

LAST_PASSING = ("last-passing", f"last-{'green'}")
"""Values of --to that name the history. The second is the name of older versions."""


def rollback(
    *,
    checklist: options.ChecklistOption = options.DEFAULT_CHECKLIST,
    to: Annotated[
        str | None,
        option(
            "Lock to restore, or the last passing run of this machine's history. "
            "\\[default: the lock of the checklist, or the history]",
            metavar="LOCK|last-passing",
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["text", "json"], typer.Option("--format", "-f", help="Output format.")
    ] = "text",
    fix_script: options.FixScriptOption = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Build the recorded environment in a temporary folder and train in it.")
    ] = False,
    python: options.PythonOption = None,
    snapshot: options.SnapshotOption = None,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT_S,
    plugin: options.PluginOption = None,
) -> None:
    """Print the commands that restore the last recorded state.

    Exit codes: 0 on success; 1 if --verify fails; 2 on usage errors.
    """
    forms = {
        "--fix-script": fix_script is not None,
        "--format json": format == "json",
        "--verify": verify,
        "--snapshot": verify and snapshot is not None,
    }
    named = [name for name, given in forms.items() if given]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} cannot be used together", hint="Run kdoctor rollback once for each.")
    refuse_with("--snapshot", snapshot, {"--python": python}, why=SNAPSHOT_IS_USED)
    catalog = load_catalog(plugin or ())
    chosen = load_checklist(checklist, catalog)
    facts = collect(catalog, snapshot, python, timeout).facts if snapshot else None
    asked = quoted("--checklist", chosen.asked_as, *(("--snapshot", str(snapshot)) if snapshot else ()))
    place, lock = _find_lock(chosen, to, lambda: _interpreter(facts, python), asked, catalog.checklists)
    if verify:
        raise typer.Exit(_verify(lock, chosen, catalog, python, timeout))
    if facts is None:
        facts = collect(catalog, None, python, timeout).facts
    now = recorded_facts(facts, identifiers=lock.identifiers)
    plan = plan_rollback(lock, now, read_installation(facts), place, chosen.asked_as)
    if fix_script is None:
        show(plan.to_json(), rendered=True) if format == "json" else show(as_text(plan))
        return
    write_atomically(fix_script, as_script(plan))
    wrote(fix_script)
    for text in plan.by_hand:
        warn(f"kdoctor: no command restores this: {text}")


def _find_lock(
    checklist: Checklist, to: str | None, interpreter: Callable[[], str], asked: str, shipped: Collection[str]
) -> tuple[str, Lock]:
    """The name of the record to restore, and the record.

    Args:
        checklist: the checklist that was recorded.
        to: the value of ``--to``.
        interpreter: finds the examined interpreter, for a record of the history.
        asked: the options that name the state, for commands.
        shipped: the checklists that a command can name.

    Raises:
        UsageError: no record was found.
    """
    missing = ""
    if to not in LAST_PASSING:
        if to and not os.path.lexists(to):
            near = did_you_mean(to, LAST_PASSING[:1]) or about_missing_file(Path(to), ".yaml")
            hint = "Name the file of a lock, or last-passing for the last passing run of the history."
            raise UsageError(f"--to {to}: no such file{near}", hint=hint)
        place, lock = load_lock(checklist, Path(to) if to else None)
        if lock is not None:
            return str(place), lock
        missing = f"{place} does not exist, and "
        if beside := next((name for name in shipped if not to and Path(f"{name}{SUFFIX}").exists()), None):
            hint = f"To restore {beside}{SUFFIX}: kdoctor rollback --checklist {beside}"
            raise UsageError(f"{place} does not exist", hint=hint)
    series = Series(host=platform.node(), checklist=checklist.name, target=interpreter())
    with opened(history_file(os.environ), create=False) as connection:
        try:
            return last_passing(connection, series, asked, shipped)
        except UsageError as error:
            raise UsageError(f"{missing}{error.message}", hint=error.hint) from error


def _interpreter(facts: Facts | None, python: str | None) -> str:
    """The examined interpreter, as reports name it."""
    target = facts.get(Target) if facts else None
    return target.executable if isinstance(target, Target) else choose_target(python, os.environ).python


def _verify(lock: Lock, checklist: Checklist, catalog: Catalog, python: str | None, timeout: float) -> int:
    """Build the recorded environment, train in it, remove it, and return an exit code."""
    treat_ends_as_interrupts()
    children = Children()
    target = choose_target(python, os.environ, children)
    strangers = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX")
    environ = {name: value for name, value in os.environ.items() if name not in strangers}
    with run_folder("rollback") as folder:
        try:
            base = base_python(lock, target.python, target.version, os.environ)
            what = f"building {counted(len(lock.facts['packages']), 'package')} in a folder (minutes)"
            warn(f"kdoctor: {what}")
            with progress() as shown:
                shown.note(what)
                run = partial(children.run, env=environ, deadline_s=timeout)
                made = rebuild(lock, base, Path(folder, "environment"), run)
        except RebuildError as error:
            show(f"Verification failed: {error}\n")
            return 1
        finally:
            children.end_all()
        restore_variables(lock, os.environ)
        return _train(checklist, catalog, made, timeout)


def _train(checklist: Checklist, catalog: Catalog, python: str, timeout: float) -> int:
    """Train the quick smoke tier on two CPU replicas in the environment that was built.

    Checks that need more than the environment, such as the driver, are left out. So is the failure policy, because
    the environment is removed.
    """
    checklist, wanted = for_environment(checklist, catalog)
    checklist = replace(checklist, rollback=None)
    checks = tuple(
        replace(entry, deselected=entry.deselected and "not part of verifying a rollback")
        for entry in plan_checks(checklist, catalog, select=wanted)
    )
    plan = Plan(checklist=checklist, checks=checks, rules=with_matrix(checklist.rules(today=today()), checks))
    with examination(catalog.probes, python, timeout) as examined:
        examined.run(plan.trainings(2))
    report = build_report(examined.collected, plan)
    show_report(report)
    works = report.verdict.exit_code == 0
    show("Rollback verified.\n" if works else f"Verification failed: {report.verdict.reason}\n")
    return 0 if works else 1
