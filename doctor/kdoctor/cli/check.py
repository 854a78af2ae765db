"""``kdoctor check``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kdoctor.cli.examine import Wanted, examination, has_own_model, own_job, recorded, save, trainings
from kdoctor.cli.history import keep_run
from kdoctor.cli.options import (
    DEFAULT_CHECKLIST,
    DEFAULT_TIMEOUT_S,
    ChecklistOption,
    DataOption,
    LockOption,
    MatrixOption,
    ModelOption,
    ModelTimeoutOption,
    NoSmokeOption,
    PluginOption,
    PythonOption,
    ReplicasOption,
    StepsOption,
    StepsPerEpochOption,
    TimeoutOption,
)
from kdoctor.cli.streams import answer_as_service, show

if TYPE_CHECKING:
    from kdoctor.checklist import Checklist
    from kdoctor.judge import PlannedCheck, Rules

_FORMATS = "terminal|json|junit|markdown|html|line|nagios|prometheus|github"


def check(
    *,
    checklist: ChecklistOption = DEFAULT_CHECKLIST,
    python: PythonOption = None,
    select: Annotated[
        list[str] | None,
        typer.Option(help="Only these checks: ids, families or globs (repeatable).", show_default=False),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(help="Not these checks: ids, families or globs (repeatable).", show_default=False),
    ] = None,
    no_smoke: NoSmokeOption = False,
    replicas: ReplicasOption = None,
    model: ModelOption = None,
    data: DataOption = None,
    steps: StepsOption = None,
    steps_per_epoch: StepsPerEpochOption = None,
    model_timeout: ModelTimeoutOption = None,
    fail_on: Annotated[
        Literal["error", "warning", "info"], typer.Option(help="The least severity that fails the run.")
    ] = "error",
    allow_unknown: Annotated[bool, typer.Option("--allow-unknown", help="Accept what could not be judged.")] = False,
    format: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option(
            "--format", "-f", metavar=_FORMATS, help="What stdout carries: terminal, unless given.", show_default=False
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output", "-o", metavar="FORMAT=FILE", help="Write a report there, too (repeatable).", show_default=False
        ),
    ] = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="Judge this recorded snapshot instead of this machine.", show_default=False)
    ] = None,
    save_snapshot: Annotated[
        Path | None, typer.Option(help="Record the facts that were judged in this file.", show_default=False)
    ] = None,
    lock: LockOption = None,
    no_lock: Annotated[bool, typer.Option("--no-lock", help="Do not compare with the last green run.")] = False,
    matrix: MatrixOption = None,
    no_history: Annotated[bool, typer.Option("--no-history", help="Do not keep this run in the history.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="One plain line on stdout (the format line), no progress.")
    ] = False,
    log_format: Annotated[
        Literal["text", "json"], typer.Option(help="What stderr carries: plain lines, or a JSON object a line.")
    ] = "text",
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
    plugin: PluginOption = None,
) -> None:
    """Examine this machine and train on it: may the job start here?

    Exit codes: 0 passed; 1 a check failed; 2 wrong usage or a broken checklist; 3 nothing failed, but something that
    matters could not be judged; 4 kdoctor itself failed; 130 interrupted. With --format nagios: Nagios' own codes.
    """
    import datetime as dt
    import time

    from kdoctor import logs
    from kdoctor.catalog import load_catalog
    from kdoctor.lock import load_lock
    from kdoctor.output import check_writable, parse_outputs, write_atomically
    from kdoctor.report import FORMATS, canvas_for, render

    started, started_at = time.monotonic(), dt.datetime.now(dt.timezone.utc)
    logs.style.as_json, logs.style.quiet = log_format == "json", quiet
    answer_as_service(format == "nagios")
    own = own_job(model, data, steps, steps_per_epoch, model_timeout, snapshot=snapshot)
    outputs = parse_outputs(output or (), FORMATS, stdout=format, default="line" if quiet else "terminal")
    answer_as_service(outputs.stdout == "nagios")
    if save_snapshot:
        check_writable(save_snapshot)
    catalog = load_catalog(plugin or ())
    wanted = Wanted(
        checklist=checklist, select=select or (), skip=skip or (), smoke=not no_smoke, own_model=own is not None
    )

    def rules_of(chosen: Checklist, planned: Sequence[PlannedCheck]) -> Rules:
        from kdoctor.assessment import with_matrix
        from kdoctor.model import Severity

        rules = chosen.rules(today=started_at.date(), fail_on=Severity(fail_on), allow_unknown=allow_unknown)
        return with_matrix(rules, planned, matrix)

    if snapshot:
        facts, interrupted, target = recorded(snapshot, catalog), False, f"recorded in {snapshot}"
        chosen, planned = replace(wanted, own_model=has_own_model(facts)).plan(catalog)
        rules = rules_of(chosen, planned)
        place, last_green = (None, None) if no_lock else load_lock(chosen, lock)
    else:
        with examination(catalog, python, timeout) as (examined, target):
            chosen, planned = wanted.plan(catalog)
            place, last_green = (None, None) if no_lock else load_lock(chosen, lock)
            _load_the_rest()
            rules = rules_of(chosen, planned)  # before the trainings: a broken matrix must not cost their minutes
            examined.run(trainings(chosen, planned, replicas, own))
        facts, interrupted = examined.facts, examined.interrupted
    if save_snapshot:
        save(save_snapshot, facts)

    from kdoctor.assessment import RunNote, assess
    from kdoctor.judge import exit_code_for
    from kdoctor.measured import with_measurements
    from kdoctor.rollback import since_last_green

    note = RunNote(target=target, started_at=started_at, duration_s=time.monotonic() - started, interrupted=interrupted)
    report = since_last_green(assess(facts, chosen, planned, rules, note), facts, last_green, str(place))
    scope = _scope(select, skip, no_smoke=no_smoke, replicas=replicas, snapshot=snapshot)
    report = keep_run(with_measurements(report, facts), scope, wanted=not no_history)
    for item in outputs.files:
        write_atomically(item.path, render(report, item.format))
    show(render(report, outputs.stdout, canvas_for(sys.stdout, os.environ)))
    exit_code = exit_code_for(report.verdict, outputs.stdout)
    logs.log("verdict", verdict=report.verdict.conclusion.value, exit_code=exit_code, reason=report.verdict.reason)
    raise typer.Exit(exit_code)


def _scope(
    select: Sequence[str] | None,
    skip: Sequence[str] | None,
    *,
    no_smoke: bool,
    replicas: int | None,
    snapshot: Path | None,
) -> str:
    """The options that narrow a run: the history compares runs of one kind only."""
    parts = [f"--select {item}" for item in select or ()] + [f"--skip {item}" for item in skip or ()]
    parts += ["--no-smoke"] * no_smoke + [f"--replicas {replicas}"] * (replicas is not None)
    return " ".join(parts + [f"--snapshot {snapshot}"] * (snapshot is not None))


def _load_the_rest() -> None:
    """Import what judges and prints, while the probes' children are at work on the other cores."""
    import kdoctor.assessment
    import kdoctor.report.terminal  # noqa: F401
