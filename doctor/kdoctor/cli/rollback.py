"""``kdoctor rollback``."""

from __future__ import annotations

import datetime as dt
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.plan import plan
from kdoctor.checklist.resolve import Checklist
from kdoctor.cli.options import (
    DEFAULT_CHECKLIST,
    DEFAULT_TIMEOUT_S,
    ChecklistOption,
    PluginOption,
    PythonOption,
    TimeoutOption,
)
from kdoctor.cli.stderr import complain, show
from kdoctor.engine.catalog import Catalog, load_catalog
from kdoctor.engine.judge import FactTable
from kdoctor.errors import UsageError
from kdoctor.facts import Target
from kdoctor.history.last_passing import Series, last_green
from kdoctor.history.location import history_file
from kdoctor.history.store import opened
from kdoctor.lock.document import Lock
from kdoctor.lock.facts import recorded_facts
from kdoctor.lock.store import load_lock
from kdoctor.probes.process.child import Children
from kdoctor.probes.target import choose_target
from kdoctor.report.formats import render
from kdoctor.rollback.installers import how_made
from kdoctor.rollback.plan import plan_rollback
from kdoctor.rollback.rebuild import RebuildError, base_python, rebuild
from kdoctor.rollback.render import as_json, as_script, as_text
from kdoctor.rollback.verify import for_environment, restore_variables
from kdoctor.run.assemble import RunNote, assess
from kdoctor.run.plan import examination, see, trainings
from kdoctor.text.canvas import canvas_for

LAST_GREEN = "last-green"


def rollback(
    *,
    checklist: ChecklistOption = DEFAULT_CHECKLIST,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="LOCK|last-green",
            help="The lock to go back to, or the last green run of this machine's history. Unless given: the "
            "checklist's own lock, and where there is none the history.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["text", "json"], typer.Option("--format", "-f", help="What stdout carries.")
    ] = "text",
    script: Annotated[bool, typer.Option("--script", help="As a bash script that asks before it acts.")] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Build the recorded environment in a temporary folder and train in it."),
    ] = False,
    python: PythonOption = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="From this recorded snapshot instead of this machine.", show_default=False)
    ] = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
    plugin: PluginOption = None,
) -> None:
    """Say how to get from what stands now back to what was recorded; only for what drifted. It changes nothing.

    Exit codes: 0 said, or with --verify the way back works; 1 with --verify: it does not; 2 wrong usage.
    """
    _one_form(script=script, json=format == "json", verify=verify, snapshot=snapshot is not None)
    catalog = load_catalog(plugin or ())
    chosen = load_checklist(checklist, catalog)
    facts = see(catalog, snapshot, python, timeout).facts if snapshot else None
    place, lock = _on_record(chosen, to, lambda: _interpreter(facts, python))
    if verify:
        raise typer.Exit(_verify(lock, chosen, catalog, python, timeout))
    if facts is None:
        facts = see(catalog, None, python, timeout).facts
    now = recorded_facts(facts, identifiers=lock.identifiers)
    plan = plan_rollback(lock, now, how_made(facts), place, chosen.asked_as)
    if script:
        show(as_script(plan))
    else:
        show(as_json(plan) if format == "json" else as_text(plan))
    for text in plan.by_hand if script else ():
        complain(f"kdoctor: not undone by a command: {text}")


def _one_form(**wanted: bool) -> None:
    """Refuse what does not go together, instead of leaving a half of it out.

    Raises:
        UsageError: two forms are asked for, or a proof of what a snapshot tells.
    """
    options = {"script": "--script", "json": "--format json", "verify": "--verify"}
    named = [option for name, option in options.items() if wanted[name]]
    named += ["--snapshot"] if wanted["verify"] and wanted["snapshot"] else []
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} do not go together", hint="Ask for one after the other.")


def _on_record(checklist: Checklist, to: str | None, interpreter: Callable[[], str]) -> tuple[str, Lock]:
    """The record to go back to, and its name in words.

    Args:
        checklist: whose record.
        to: what the option names.
        interpreter: finds the one that is examined; the history knows runs by it.

    Raises:
        UsageError: there is none, and why.
    """
    if to != LAST_GREEN:
        place, lock = load_lock(checklist, Path(to) if to else None)
        if lock is not None:
            return str(place), lock
        missing = f"{place} is not there, and "
    else:
        missing = ""

    series = Series(host=platform.node(), checklist=checklist.name, target=interpreter())
    with opened(history_file(os.environ), create=False) as connection:
        try:
            return last_green(connection, series)
        except UsageError as error:
            raise UsageError(f"{missing}{error.message}", hint=error.hint) from error


def _interpreter(facts: FactTable | None, python: str | None) -> str:
    """The interpreter that is examined, as the reports name it."""
    target = facts.get(Target) if facts else None
    return target.executable if isinstance(target, Target) else choose_target(python, os.environ).python


def _verify(lock: Lock, checklist: Checklist, catalog: Catalog, python: str | None, timeout: float) -> int:
    """Whether the recorded environment can be built and trains, as an exit code. What was built is removed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    children = Children()
    target = choose_target(python, os.environ, children)
    strangers = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX")
    environ = {name: value for name, value in os.environ.items() if name not in strangers}
    with tempfile.TemporaryDirectory(prefix="kdoctor-rollback-", ignore_cleanup_errors=True) as folder:
        try:
            base = base_python(lock, target.python, target.version, os.environ)
            complain(f"kdoctor: building {len(lock.facts['packages'])} packages in a temporary folder")
            made = rebuild(
                lock,
                base,
                Path(folder, "environment"),
                lambda argv: children.run(argv, env=environ, deadline_s=timeout),
            )
        except RebuildError as error:
            show(f"The way back does not work: {error}\n")
            return 1
        finally:
            children.end_all()
        restore_variables(lock, os.environ)
        return _train(checklist, catalog, made, timeout)


def _train(checklist: Checklist, catalog: Catalog, python: str, timeout: float) -> int:
    """Run the quick smoke tier over two replicas on the CPU in the environment that was built.

    It is about the packages: checks that ask for more than the environment holds, such as the driver, stay out.
    """
    started, started_at = time.monotonic(), dt.datetime.now(dt.timezone.utc)
    checklist, wanted = for_environment(checklist, catalog)
    planned = [
        replace(entry, deselected=entry.deselected and "the way back is proved by its packages alone")
        for entry in plan(checklist, catalog, select=wanted)
    ]
    with examination(catalog.probes, python, timeout) as (examined, target):
        examined.run(trainings(checklist, planned, 2))
    note = RunNote(target=target, started_at=started_at, duration_s=time.monotonic() - started)
    report = assess(examined.facts, checklist, planned, checklist.rules(today=started_at.date()), note)
    show(render(report, "terminal", canvas_for(sys.stdout, os.environ)))
    works = report.verdict.exit_code == 0
    show("The way back works.\n" if works else f"The way back does not work: {report.verdict.reason}\n")
    return 0 if works else 1
