"""``kdoctor check``."""

from __future__ import annotations

import datetime as dt
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from kdoctor.checklist.resolve import Checklist
from kdoctor.cli.history import keep_run, last_green_run
from kdoctor.cli.options import (
    DEFAULT_CHECKLIST,
    DEFAULT_TIMEOUT_S,
    AllowUnknownOption,
    ChecklistOption,
    DataOption,
    FailOnOption,
    LockOption,
    MatrixOption,
    ModelOption,
    ModelTimeoutOption,
    NoHistoryOption,
    NoSmokeOption,
    OutputOption,
    PluginOption,
    PythonOption,
    ReplicasOption,
    ReportFormatOption,
    StepsOption,
    StepsPerEpochOption,
    TimeoutOption,
)
from kdoctor.cli.stderr import answer_as_service, show
from kdoctor.engine.catalog import Catalog, load_catalog, load_probes
from kdoctor.engine.judge import FactTable, PlannedCheck, Rules, exit_code_for
from kdoctor.engine.report import Report
from kdoctor.lock.document import Lock
from kdoctor.lock.record import own_lock
from kdoctor.lock.store import load_lock
from kdoctor.model import Severity
from kdoctor.output import Outputs, check_writable, parse_outputs, write_atomically
from kdoctor.report.formats import FORMATS, render
from kdoctor.rollback.decisions import since_last_green
from kdoctor.run import log as logs
from kdoctor.run.assemble import RunNote, assess, with_matrix
from kdoctor.run.measured import with_measurements
from kdoctor.run.plan import Wanted, examination, has_own_model, own_job, recorded, save, trainings
from kdoctor.smoke.own_model import OwnJob
from kdoctor.text.canvas import canvas_for


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
    fail_on: FailOnOption = "error",
    allow_unknown: AllowUnknownOption = False,
    format: ReportFormatOption = None,  # noqa: A002 - the option's name
    output: OutputOption = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="Judge this recorded snapshot instead of this machine.", show_default=False)
    ] = None,
    save_snapshot: Annotated[
        Path | None, typer.Option(help="Record the facts that were judged in this file.", show_default=False)
    ] = None,
    lock: LockOption = None,
    no_lock: Annotated[bool, typer.Option("--no-lock", help="Do not compare with the last green run.")] = False,
    matrix: MatrixOption = None,
    no_history: NoHistoryOption = False,
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

    Exit codes: 0 passed; 1 a check failed; 2 wrong usage or a broken checklist;
    3 nothing failed, but something that matters could not be judged; 4 kdoctor
    itself failed; 130 interrupted. With --format nagios: Nagios' own codes.
    """
    started, started_at = time.monotonic(), dt.datetime.now(dt.timezone.utc)
    logs.style.as_json, logs.style.quiet = log_format == "json", quiet
    answer_as_service(format == "nagios")
    own = own_job(model, data, steps, steps_per_epoch, model_timeout, snapshot=snapshot)
    outputs = parse_outputs(output or (), FORMATS, stdout=format, default="line" if quiet else "terminal")
    answer_as_service(outputs.stdout == "nagios")
    if save_snapshot:
        check_writable(save_snapshot)
    judging = _Judging(
        wanted=Wanted(
            checklist=checklist, select=select or (), skip=skip or (), smoke=not no_smoke, own_model=own is not None
        ),
        today=started_at.date(),
        fail_on=fail_on,
        allow_unknown=allow_unknown,
        matrix=matrix,
        lock=lock,
        use_lock=not no_lock,
    )
    if snapshot:
        gathered = judging.recorded(snapshot, plugin or ())
    else:
        gathered = judging.live(python, timeout, replicas, own, plugin or ())
        gathered = replace(gathered, asks_history=not no_history)
    if save_snapshot:
        save(save_snapshot, gathered.facts)
    report = gathered.report(started_at, time.monotonic() - started)
    scope = _scope(select, skip, no_smoke=no_smoke, replicas=replicas, snapshot=snapshot, model=model)
    kept = keep_run(report, scope, wanted=not no_history, found=lambda: gathered.lock(report))
    _deliver(kept, outputs)


@dataclass(frozen=True, kw_only=True)
class _Agreed:
    """What this run is judged by: the checklist with its plan and rules, and the last green run."""

    checklist: Checklist
    planned: tuple[PlannedCheck, ...]
    rules: Rules
    lock: Path | None
    """The lock's file; None where there is none."""
    last_green: Lock | None


@dataclass(frozen=True, kw_only=True)
class _Gathered:
    """Facts, and what they are to be judged by."""

    facts: FactTable
    agreed: _Agreed
    target: str
    """The interpreter in words, for where the facts do not name it."""
    interrupted: bool = False
    asks_history: bool = False
    """Whether the history of this machine may stand in for a lock that is not there."""

    def report(self, started_at: datetime, duration_s: float) -> Report:
        """Judge, and put what drifted since the last green run beside it."""
        agreed = self.agreed
        note = RunNote(target=self.target, started_at=started_at, duration_s=duration_s, interrupted=self.interrupted)
        report = assess(self.facts, agreed.checklist, agreed.planned, agreed.rules, note)
        last_green, place = agreed.last_green, str(agreed.lock)
        if last_green is None and agreed.lock is not None and self.asks_history and report.decisions:
            last_green, place = last_green_run(report)
        report = since_last_green(report, self.facts, last_green, place, agreed.checklist.asked_as)
        return with_measurements(report, self.facts)

    def lock(self, report: Report) -> Lock:
        """What this run found, for the history of green runs."""
        return own_lock(self.agreed.checklist, report, self.facts)


@dataclass(frozen=True, kw_only=True)
class _Judging:
    """How the options want this run to be judged."""

    wanted: Wanted
    today: date
    fail_on: str
    allow_unknown: bool
    matrix: str | None
    lock: Path | None
    use_lock: bool

    def agree(self, wanted: Wanted, catalog: Catalog) -> _Agreed:
        """Read the checklist, its lock and the matrix: what is broken in them must not cost a training's minutes."""
        chosen, planned = wanted.plan(catalog)
        place, last_green = load_lock(chosen, self.lock) if self.use_lock else (None, None)
        rules = chosen.rules(today=self.today, fail_on=Severity(self.fail_on), allow_unknown=self.allow_unknown)
        rules = with_matrix(rules, planned, self.matrix)
        return _Agreed(checklist=chosen, planned=planned, rules=rules, lock=place, last_green=last_green)

    def recorded(self, snapshot: Path, plugins: Sequence[str]) -> _Gathered:
        """The facts of a snapshot."""
        catalog = load_catalog(plugins)
        facts = recorded(snapshot, catalog)
        agreed = self.agree(replace(self.wanted, own_model=has_own_model(facts)), catalog)
        return _Gathered(facts=facts, agreed=agreed, target=f"recorded in {snapshot}")

    def live(
        self, python: str | None, timeout: float, replicas: int | None, own: OwnJob | None, plugins: Sequence[str]
    ) -> _Gathered:
        """The facts of this machine. Its probes are at work while all else is imported and read."""
        with examination(load_probes(plugins), python, timeout) as (examined, target):
            agreed = self.agree(self.wanted, load_catalog(plugins))
            examined.run(trainings(agreed.checklist, agreed.planned, replicas, own))
        return _Gathered(facts=examined.facts, agreed=agreed, target=target, interrupted=examined.interrupted)


def _deliver(report: Report, outputs: Outputs) -> None:
    """Write the report to its files and to stdout, and leave with its exit code."""
    for item in outputs.files:
        write_atomically(item.path, render(report, item.format))
    show(render(report, outputs.stdout, canvas_for(sys.stdout, os.environ)))
    exit_code = exit_code_for(report.verdict, outputs.stdout)
    if logs.style.as_json:
        verdict, message = report.verdict, render(report, "line").rstrip("\n")
        logs.log(
            "verdict",
            verdict=verdict.conclusion.value,
            exit_code=exit_code,
            reason=verdict.reason,
            message=message,
        )
    raise typer.Exit(exit_code)


def _scope(
    select: Sequence[str] | None,
    skip: Sequence[str] | None,
    *,
    no_smoke: bool,
    replicas: int | None,
    snapshot: Path | None,
    model: str | None,
) -> str:
    """The options that narrow a run: the history compares runs of one kind only."""
    parts = [f"--select {item}" for item in select or ()] + [f"--skip {item}" for item in skip or ()]
    parts += ["--no-smoke"] * no_smoke + [f"--replicas {replicas}"] * (replicas is not None)
    parts += [f"--model {model}"] * (model is not None)
    return " ".join(parts + [f"--snapshot {snapshot}"] * (snapshot is not None))
