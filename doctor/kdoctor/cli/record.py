"""``kdoctor checklist record``."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kdoctor.catalog.load import Catalog, load_catalog
from kdoctor.cli import options
from kdoctor.cli.conflicts import SNAPSHOT_IS_USED, refuse_with
from kdoctor.cli.deliver import keep_run, show_report
from kdoctor.cli.options import option
from kdoctor.cli.stderr import show
from kdoctor.commands.again import program
from kdoctor.commands.shell import quoted
from kdoctor.errors import UsageError, did_you_mean
from kdoctor.inputs import read_bounded
from kdoctor.lock.document import Accepted, Lock, LockError, NewerLockError, loads, lock_error
from kdoctor.lock.facts import recorded_facts
from kdoctor.lock.record import make_lock, own_lock, reason_not_recordable
from kdoctor.lock.store import lock_path, write_lock
from kdoctor.output import check_writable
from kdoctor.run.assemble import build_report
from kdoctor.run.collect import collect
from kdoctor.run.log import warn
from kdoctor.run.plan import RunOptions
from kdoctor.text.lists import counted


def record(
    checklist: options.ChecklistArgument = options.DEFAULT_CHECKLIST,
    *,
    lock: options.LockOption = None,
    accept: Annotated[
        list[str] | None, option("Record the lock even if this check fails (repeatable). Requires --reason.")
    ] = None,
    reason: Annotated[str | None, option("Why those failures are accepted.")] = None,
    with_identifiers: Annotated[
        bool, typer.Option("--with-identifiers", help="Also record serial numbers, paths and job names.")
    ] = False,
    slower: Annotated[
        float,
        typer.Option(
            min=1.01, metavar="FACTOR", help="Report drift when a training step is slower than recorded by this factor."
        ),
    ] = 2.0,
    python: options.PythonOption = None,
    replicas: options.ReplicasOption = None,
    snapshot: options.SnapshotOption = None,
    no_history: options.NoHistoryOption = False,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT_S,
    plugin: options.PluginOption = None,
) -> None:
    """Run the checks and, if they pass, record the facts in the lock of the checklist.

    A failed run does not change the lock. Exit codes: 0 recorded; 1 or 3 the run did not pass; 2 usage error.
    """
    refuse_with("--snapshot", snapshot, {"--python": python}, why=SNAPSHOT_IS_USED)
    catalog = load_catalog(plugin or ())
    accepted = _accepted(accept or [], reason, catalog)
    chosen = (("--checklist", checklist), ("--snapshot", snapshot), ("--python", python))
    again = quoted(*program(), "check", *(word for name, value in chosen if value for word in (name, str(value))))
    wanted = RunOptions(checklist=checklist, replicas=replicas, snapshot=snapshot, use_lock=False, command=again)
    plan = wanted.plan(catalog)
    path = lock or lock_path(plan.checklist)
    check_writable(path)
    before, previous = _previous(path, plan.checklist.name)
    plan = replace(plan, lock_file=path, lock=previous)
    collected = collect(catalog, snapshot, python, timeout, plan.trainings(replicas))
    report = build_report(collected, plan, use_history=not no_history)
    if not no_history:
        keep_run(report, plan.scope, lambda: own_lock(plan.checklist, report, collected.facts))
    why_not = reason_not_recordable(report, accepted)
    if why_not:
        show_report(report)
        warn(f"kdoctor: nothing was recorded: {why_not}")
        raise typer.Exit(report.verdict.exit_code or 1)
    found = recorded_facts(collected.facts, identifiers=with_identifiers, slower=slower)
    made = make_lock(plan.checklist, report, found, accepted=accepted, previous=previous)
    if collected.recorded_at:  # the lock has the date of the evidence
        made = made.model_copy(update={"recorded": collected.recorded_at})
    for item in accepted:
        if item not in made.accepted:
            warn(f"kdoctor: --accept {item.check} was not needed: the check passed")
    write_lock(path, made, before)
    number = sum(map(len, made.facts.values()))
    show(f"Recorded {counted(number, 'fact')} of {plan.checklist.name} version {plan.checklist.version} in {path}\n")


def _accepted(ids: list[str], reason: str | None, catalog: Catalog) -> list[Accepted]:
    reason = (reason or "").strip()
    if ids and not reason:
        raise UsageError("--accept requires --reason: the lock is reviewed with it")
    if reason and not ids:
        raise UsageError("--reason requires --accept")
    for check_id in ids:
        if check_id not in catalog.checks:
            raise UsageError(f"--accept {check_id}: no such check{did_you_mean(check_id, catalog.checks)}")
    return [Accepted(check=check_id, reason=reason) for check_id in dict.fromkeys(ids)]


def _previous(path: Path, name: str) -> tuple[bytes | None, Lock | None]:
    """The bytes of the lock's file, and the lock if it is a valid one of that checklist."""
    if not path.exists():
        return None, None
    before = read_bounded(path)
    try:
        previous = loads(before, str(path))
    except NewerLockError:
        raise
    except LockError as error:
        warn(f"kdoctor: {error.message}; it will be replaced if the run passes")
        return before, None
    if previous.checklist != name:
        message = f"lock of checklist {previous.checklist!r}, expected {name!r}"
        raise lock_error(path, message, "Name another file with --lock, or remove that one")
    return before, previous
