"""``kdoctor smoke``."""

from __future__ import annotations

import datetime as dt
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kdoctor.checklist.for_scenarios import checklist_of, choose_scenarios, typical_seconds
from kdoctor.checklist.plan import plan
from kdoctor.cli.history import keep_run
from kdoctor.cli.options import (
    DEFAULT_TIMEOUT_S,
    AllowUnknownOption,
    FailOnOption,
    NoHistoryOption,
    OutputOption,
    PluginOption,
    PythonOption,
    ReportFormatOption,
    TimeoutOption,
)
from kdoctor.cli.stderr import complain, show
from kdoctor.engine.catalog import load_catalog
from kdoctor.engine.judge import exit_code_for
from kdoctor.errors import UsageError
from kdoctor.model import Severity
from kdoctor.output import parse_outputs, write_atomically
from kdoctor.report.formats import FORMATS, render
from kdoctor.run.assemble import RunNote, assess
from kdoctor.run.measured import with_measurements
from kdoctor.run.plan import examination, trainings
from kdoctor.smoke.scenario import Scenario
from kdoctor.text.canvas import canvas_for
from kdoctor.text.lists import counted

_MOST_PARALLEL = 4  # as kdoctor_target.runner.main has it


def smoke(
    scenario: Annotated[
        list[str] | None, typer.Argument(metavar="SCENARIO", help="Ids of scenarios.", show_default=False)
    ] = None,
    *,
    tier: Annotated[
        str | None,
        typer.Option(
            metavar="quick|standard|full",
            help="How thorough: quick, unless scenarios or a strategy are named.",
            show_default=False,
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Only scenarios of this strategy: mirrored, multi-worker, ...", show_default=False
        ),
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(
            "--replicas",
            min=1,
            max=64,
            help="Train on this many logical CPU devices, not on every visible GPU.",
            show_default=False,
        ),
    ] = None,
    keep_artifacts: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keep every case's events, error output and stacks there.", show_default=False
        ),
    ] = None,
    python: PythonOption = None,
    fail_on: FailOnOption = "error",
    allow_unknown: AllowUnknownOption = False,
    format: ReportFormatOption = None,  # noqa: A002 - the option's name
    output: OutputOption = None,
    no_history: NoHistoryOption = False,
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
    plugin: PluginOption = None,
) -> None:
    """Train only: what distributed Keras does here, strategy by strategy.

    Exit codes are those of kdoctor check.
    """
    started, started_at = time.monotonic(), dt.datetime.now(dt.timezone.utc)
    outputs = parse_outputs(output or (), FORMATS, stdout=format)
    catalog = load_catalog(plugin or ())
    chosen = choose_scenarios(catalog, scenario or (), strategy=strategy, tier=tier)
    if keep_artifacts:
        _make_folder(keep_artifacts)
    name = f"smoke-{tier or ('chosen' if scenario or strategy else 'quick')}"
    checklist = checklist_of(catalog, chosen, name, replicas=replicas)
    planned = plan(checklist, catalog)
    complain(_announcement(chosen, name, replicas))
    with examination(catalog.probes, python, timeout) as (examined, target):
        asked = [replace(training, artifacts=keep_artifacts) for training in trainings(checklist, planned, None)]
        examined.run(asked)
    rules = checklist.rules(today=started_at.date(), fail_on=Severity(fail_on), allow_unknown=allow_unknown)
    duration_s = time.monotonic() - started
    note = RunNote(target=target, started_at=started_at, duration_s=duration_s, interrupted=examined.interrupted)
    report = with_measurements(assess(examined.facts, checklist, planned, rules, note), examined.facts)
    report = keep_run(report, f"--replicas {replicas}" if replicas else "", wanted=not no_history)
    for item in outputs.files:
        write_atomically(item.path, render(report, item.format))
    show(render(report, outputs.stdout, canvas_for(sys.stdout, os.environ)))
    raise typer.Exit(exit_code_for(report.verdict, outputs.stdout))


def _announcement(scenarios: tuple[Scenario, ...], name: str, replicas: int | None) -> str:
    """What is about to be trained, and about how long it takes."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parallel = 1 if replicas is None else max(1, min(_MOST_PARALLEL, usable))
    cases = sum(len(item.cases) for item in scenarios)
    where = "every visible GPU (--replicas N: on CPU devices)" if replicas is None else counted(replicas, "CPU device")
    seconds = typical_seconds(scenarios, parallel=parallel, replicas=replicas)
    by_pair = [f"{item.id} {item.pair_s:g} s or more" for item in scenarios if item.pair_s and replicas is None]
    more = f", and for each pair of GPUs (28 of 8, 120 of 16) {', '.join(by_pair)}" if by_pair else ""
    return (
        f"kdoctor: {name} trains {counted(len(scenarios), 'scenario')} ({counted(cases, 'case')}) on {where}: "
        f"about {seconds:.0f} s on an idle machine{more}"
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--keep-artifacts {folder}: {error.strerror}") from None
