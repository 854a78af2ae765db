"""``kdoctor smoke``."""

from __future__ import annotations

import os
from dataclasses import replace

from kdoctor.checklist.for_scenarios import typical_seconds
from kdoctor.checklist.resolve import Checklist
from kdoctor.cli import options
from kdoctor.cli.deliver import ReportFormatOption, deliver, keep_run
from kdoctor.engine.catalog import load_catalog
from kdoctor.errors import UsageError
from kdoctor.model import Severity
from kdoctor.output import parse_outputs
from kdoctor.report.formats import FORMATS
from kdoctor.run.assemble import build_report
from kdoctor.run.log import warn
from kdoctor.run.plan import smoke_plan
from kdoctor.run.session import examination
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
    no_history: options.NoHistoryOption = False,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT_S,
    plugin: options.PluginOption = None,
) -> None:
    """Run only the smoke trainings, one distribution strategy at a time.

    Exit codes are those of kdoctor check.
    """
    outputs = parse_outputs(output or (), FORMATS, stdout=format)
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
    )
    if keep_artifacts:
        try:
            keep_artifacts.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise UsageError(f"--keep-artifacts {keep_artifacts}: is a file, not a folder") from None
        except OSError as error:
            raise UsageError(f"--keep-artifacts {keep_artifacts}: {error.strerror}") from None
    warn(_announcement(plan.checklist, replicas))
    with examination(catalog.probes, python, timeout) as examined:
        examined.run([replace(training, artifacts=keep_artifacts) for training in plan.trainings()])
    report = build_report(examined.collected, plan, use_history=not no_history)
    if not no_history:
        keep_run(report, plan.scope)
    deliver(report, outputs)


def _announcement(checklist: Checklist, replicas: int | None) -> str:
    """What is about to be trained, and about how long it takes."""
    scenarios = [entry.scenario for entry in checklist.scenarios]
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parallel = 1 if replicas is None else max(1, min(_MAX_PARALLEL, usable))
    cases = sum(len(item.cases) for item in scenarios)
    where = "every visible GPU (--replicas N: on CPU devices)" if replicas is None else counted(replicas, "CPU device")
    seconds = typical_seconds(scenarios, parallel=parallel, replicas=replicas)
    by_pair = [f"{item.id} {item.pair_s:g} s or more" for item in scenarios if item.pair_s and replicas is None]
    more = f", and for each pair of GPUs (28 for 8 GPUs, 120 for 16) {', '.join(by_pair)}" if by_pair else ""
    amount = f"{counted(len(scenarios), 'scenario')} ({counted(cases, 'case')})"
    return f"kdoctor: {checklist.name} trains {amount} on {where}: about {seconds:.0f} s on an idle machine{more}"
