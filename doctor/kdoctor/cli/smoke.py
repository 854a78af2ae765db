"""``kdoctor smoke``."""

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import replace

from kdoctor.catalog.load import load_catalog
from kdoctor.checklist.for_scenarios import typical_seconds
from kdoctor.checklist.resolve import Checklist
from kdoctor.cli import options
from kdoctor.cli.deliver import ReportFormatOption, asked_command, deliver, keep_run
from kdoctor.errors import UsageError
from kdoctor.history.location import history_file, is_off
from kdoctor.history.read import passing_durations
from kdoctor.history.store import opened
from kdoctor.model import Severity
from kdoctor.output import parse_outputs
from kdoctor.report.formats import FORMATS
from kdoctor.run.assemble import build_report
from kdoctor.run.interrupts import delayed_interrupt
from kdoctor.run.log import style, warn
from kdoctor.run.plan import Plan, smoke_plan
from kdoctor.run.session import examination
from kdoctor.smoke.scenario import Scenario
from kdoctor.text.lists import counted

_MAX_PARALLEL = 4  # as in kdoctor_target.runner.main


def smoke(
    scenario: options.ScenariosArgument = None,
    *,
    tier: options.TierOption = None,
    strategy: options.StrategyOption = None,
    gpus: options.SmokeGpusOption = None,
    replicas: options.SmokeReplicasOption = None,
    keep_artifacts: options.KeepArtifactsOption = None,
    python: options.PythonOption = None,
    fail_on: options.FailOnOption = "error",
    allow_unknown: options.AllowUnknownOption = False,
    format: ReportFormatOption = None,  # noqa: A002 - the option's name
    output: options.OutputOption = None,
    verbose: options.VerboseOption = 0,
    quiet: options.QuietOption = False,
    no_history: options.NoHistoryOption = False,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT_S,
    case_timeout: options.CaseTimeoutOption = None,
    plugin: options.PluginOption = None,
) -> None:
    """Run only the smoke trainings.

    Exit codes are those of kdoctor check.
    """
    style.quiet = quiet
    outputs = parse_outputs(output or (), FORMATS, stdout=format, default="line" if quiet else "terminal")
    catalog = load_catalog(plugin or ())
    plan = smoke_plan(
        catalog,
        scenario or (),
        strategy=strategy,
        tier=tier,
        gpus=gpus,
        replicas=replicas,
        fail_on=Severity(fail_on),
        allow_unknown=allow_unknown,
        command=asked_command(sys.argv[1:]),
    )
    if keep_artifacts:
        try:
            keep_artifacts.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise UsageError(f"--keep-artifacts {keep_artifacts}: is a file, not a folder") from None
        except OSError as error:
            raise UsageError(f"--keep-artifacts {keep_artifacts}: {error.strerror}") from None
    past = _past_durations(plan) if not no_history else []
    if not quiet:
        warn(_announcement(plan.checklist, replicas, past, timeout))
    with examination(catalog.probes, python, timeout) as examined:
        examined.run(
            [
                replace(training, artifacts=keep_artifacts, scenario=_limited(training.scenario, case_timeout))
                for training in plan.trainings()
            ]
        )
    with delayed_interrupt():
        report = build_report(examined.collected, plan, use_history=not no_history)
        try:
            deliver(report, outputs, verbose)
        finally:  # the report comes first, whatever state the history is in
            if not no_history:
                keep_run(report, plan.scope)


def _limited(scenario: Scenario, case_timeout: float | None) -> Scenario:
    return scenario if case_timeout is None else replace(scenario, deadline_s=case_timeout)


def _past_durations(plan: Plan) -> list[float]:
    """Seconds that such runs took on this machine; none if the history is off or cannot be read."""
    if is_off(os.environ):
        return []
    try:
        with opened(history_file(os.environ), create=False) as connection:
            return passing_durations(connection, platform.node(), plan.checklist.name, plan.scope)
    except UsageError:  # a broken history is reported when the run is recorded
        return []


def _announcement(checklist: Checklist, replicas: int | None, past: Sequence[float], timeout: float) -> str:
    """What is about to be trained, and how long that took before: here, or where it was measured."""
    scenarios = [entry.scenario for entry in checklist.scenarios]
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parallel = 1 if replicas is None else max(1, min(_MAX_PARALLEL, usable))
    cases = sum(len(item.cases) for item in scenarios)
    where = "every visible GPU (--replicas N: on CPU devices)" if replicas is None else counted(replicas, "CPU device")
    by_pair = [f"{item.id} {item.pair_s:g} s or more" for item in scenarios if item.pair_s and replicas is None]
    more = f", and for each pair of GPUs (28 for 8 GPUs, 120 for 16) {', '.join(by_pair)}" if by_pair else ""
    amount = f"{counted(len(scenarios), 'scenario')} ({counted(cases, 'case')})"
    if past:
        runs = "passing run" if len(past) == 1 else f"{len(past)} passing runs"
        took = f"the last {runs} here took {_range(past)}"
    else:
        seconds = typical_seconds(scenarios, parallel=parallel, replicas=replicas)
        took = (
            f"measured on an idle machine: {seconds:.0f} s{more}; a busy or slower one may need several times as long"
        )
    return f"kdoctor: {checklist.name} trains {amount} on {where}; {took} (time limit: {timeout:g} s)"


def _range(seconds: Sequence[float]) -> str:
    low, high = f"{min(seconds):.0f}", f"{max(seconds):.0f}"
    return f"{high} s" if low == high else f"{low} to {high} s"
