"""``kdoctor rollback``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kdoctor.cli.examine import examination, recorded
from kdoctor.cli.options import (
    DEFAULT_CHECKLIST,
    DEFAULT_TIMEOUT_S,
    ChecklistOption,
    PluginOption,
    PythonOption,
    TimeoutOption,
)
from kdoctor.cli.streams import complain, show

if TYPE_CHECKING:
    from kdoctor.catalog import Catalog
    from kdoctor.checklist import Checklist
    from kdoctor.lock import Lock

LAST_GREEN = "last-green"


def rollback(
    *,
    checklist: ChecklistOption = DEFAULT_CHECKLIST,
    to: Annotated[
        str, typer.Option(metavar="LOCK|last-green", help="The lock to go back to; last-green is the checklist's own.")
    ] = LAST_GREEN,
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
    from kdoctor.catalog import load_catalog
    from kdoctor.checklist import load_checklist
    from kdoctor.lock import LockError, load_lock, recorded_facts
    from kdoctor.rollback import as_json, as_script, as_text, how_made, plan_rollback

    catalog = load_catalog(plugin or ())
    chosen = load_checklist(checklist, catalog)
    place, lock = load_lock(chosen, None if to == LAST_GREEN else Path(to))
    if lock is None:
        raise LockError(
            f"{place} is not there: no green run of {chosen.name} is on record",
            hint="Record one with kdoctor checklist record, or name another lock with --to",
        )
    if verify:
        raise typer.Exit(_verify(lock, chosen, catalog, python, timeout))
    if snapshot:
        facts = recorded(snapshot, catalog)
    else:
        with examination(catalog.probes, python, timeout) as (examined, _):
            examined.run([])
        facts = examined.facts
    plan = plan_rollback(lock, recorded_facts(facts, identifiers=lock.identifiers), how_made(facts), str(place))
    if script:
        show(as_script(plan))
    else:
        show(as_json(plan) if format == "json" else as_text(plan))
    for text in plan.by_hand if script else ():
        complain(f"kdoctor: not undone by a command: {text}")


def _verify(lock: Lock, checklist: Checklist, catalog: Catalog, python: str | None, timeout: float) -> int:
    """Whether the recorded environment can be built and trains, as an exit code. What was built is removed."""
    import os
    import signal
    import tempfile

    from kdoctor.collect.child import Children
    from kdoctor.collect.target import choose_target
    from kdoctor.rollback import RebuildError, base_python, rebuild

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
        return _train(checklist, catalog, made, timeout)


def _train(checklist: Checklist, catalog: Catalog, python: str, timeout: float) -> int:
    """Train the checklist's quick scenarios over two replicas on the CPU in the environment that was built."""
    import datetime as dt
    import os
    import sys
    import time

    from kdoctor.assessment import RunNote, assess
    from kdoctor.checklist import plan
    from kdoctor.cli.examine import trainings
    from kdoctor.report import canvas_for, render

    started, started_at = time.monotonic(), dt.datetime.now(dt.timezone.utc)
    quick = {entry.scenario.id for entry in checklist.scenarios if entry.scenario.tier == "quick"}
    listed = [entry.check for entry in checklist.entries]
    wanted = [check.id for check in listed if check.scenario in quick or check.family == "versions"]
    planned = plan(checklist, catalog, select=wanted)
    with examination(catalog.probes, python, timeout) as (examined, target):
        examined.run(trainings(checklist, planned, 2))
    note = RunNote(target=target, started_at=started_at, duration_s=time.monotonic() - started)
    report = assess(examined.facts, checklist, planned, checklist.rules(today=started_at.date()), note)
    show(render(report, "terminal", canvas_for(sys.stdout, os.environ)))
    works = report.verdict.exit_code == 0
    show("The way back works.\n" if works else f"The way back does not work: {report.verdict.reason}\n")
    return 0 if works else 1
