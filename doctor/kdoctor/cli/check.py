"""``kdoctor check``."""

import os
import sys

import typer

from kdoctor.catalog.load import load_catalog, load_probes
from kdoctor.cli import options
from kdoctor.cli.added import added
from kdoctor.cli.conflicts import SNAPSHOT_IS_USED, is_named, refuse_with
from kdoctor.cli.deliver import ReportFormatOption, asked_command, deliver, keep_run, save
from kdoctor.cli.stderr import answer_as_service
from kdoctor.lock.record import own_lock
from kdoctor.model import Severity
from kdoctor.output import check_writable, parse_outputs
from kdoctor.report.formats import FORMATS
from kdoctor.run.assemble import build_report
from kdoctor.run.collect import read_snapshot
from kdoctor.run.interrupts import delayed_interrupt
from kdoctor.run.log import style, warn
from kdoctor.run.plan import RunOptions, recorded_with_options
from kdoctor.run.session import examination
from kdoctor.smoke.scenario import AddedTraining


def check(
    context: typer.Context,
    *,
    python: options.PythonOption = None,
    checklist: options.ChecklistOption = options.DEFAULT_CHECKLIST,
    select: options.SelectOption = None,
    skip: options.SkipOption = None,
    no_smoke: options.NoSmokeOption = False,
    gpus: options.GpusOption = None,
    replicas: options.ReplicasOption = None,
    fail_on: options.FailOnOption = "error",
    allow_unknown: options.AllowUnknownOption = False,
    verbose: options.VerboseOption = 0,
    format: ReportFormatOption = None,  # noqa: A002 - the option's name
    output: options.OutputOption = None,
    script: options.ScriptOption = None,
    fix_script: options.FixScriptOption = None,
    snapshot: options.SnapshotOption = None,
    save_snapshot: options.SaveSnapshotOption = None,
    lock: options.LockOption = None,
    no_lock: options.NoLockOption = False,
    matrix: options.MatrixOption = None,
    no_history: options.NoHistoryOption = False,
    quiet: options.QuietOption = False,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT_S,
    log_format: options.LogFormatOption = "text",
    plugin: options.PluginOption = None,
) -> None:
    """Check whether a job can start here, and what to fix first.

    Exit codes: 0 passed; 1 a check failed; 2 usage error; 3 inconclusive; 4 internal error; 130 interrupted.

    With --format nagios, the exit codes are those of Nagios plugins.
    """
    style.as_json, style.quiet = log_format == "json", quiet
    answer_as_service(format == "nagios")
    trainings = added(context, AddedTraining)
    of_this_machine = {"--python": python, "--script": script, "--save-snapshot": save_snapshot}
    of_plugins = {training.options.partition(" ")[0]: training for training in trainings}
    refuse_with("--snapshot", snapshot, {**of_this_machine, **of_plugins}, why=SNAPSHOT_IS_USED)
    files = [*(output or ()), *([f"fix-script={fix_script}"] if fix_script else [])]
    outputs = parse_outputs(files, FORMATS, stdout=format, default="line" if quiet else "terminal")
    answer_as_service(outputs.stdout == "nagios")
    if save_snapshot:
        check_writable(save_snapshot)
    wanted = RunOptions(
        checklist=checklist,
        select=select or (),
        skip=skip or (),
        smoke=not no_smoke,
        gpus=gpus,
        replicas=replicas,
        added=trainings,
        snapshot=snapshot,
        fail_on=Severity(fail_on),
        allow_unknown=allow_unknown,
        matrix=matrix,
        lock=lock,
        use_lock=not no_lock,
        command=asked_command(sys.argv[1:]),
    )
    if snapshot:
        catalog = load_catalog(plugin or ())
        collected = read_snapshot(snapshot, catalog)
        if not is_named(context, "checklist"):
            wanted = wanted.for_recording(collected.facts)
        plan = wanted.plan(catalog, recorded_with_options(collected.facts, catalog))
    else:
        for item in trainings:
            os.environ.update(item.environment)
            for name, value in item.environment.items():
                warn(f"kdoctor: {name}={value}, as the job sets it", level="info")
        folders = [script.absolute().parent] if script else [item.folder for item in trainings if item.folder]
        with examination(load_probes(plugin or ()), python, timeout, next(iter(folders), None)) as examined:
            # The probes are running while the checks are imported and the checklist is read.
            catalog = load_catalog(plugin or ())
            if not is_named(context, "checklist"):
                wanted = wanted.for_backend(catalog, os.environ.get("KERAS_BACKEND"))
            plan = wanted.plan(catalog)
            examined.run(plan.trainings(replicas, trainings))
        collected = examined.collected
    with delayed_interrupt():
        if save_snapshot:
            save(save_snapshot, collected.facts)
        report = build_report(collected, plan, use_history=not no_history)
        try:
            deliver(report, outputs, verbose)
        finally:  # the report comes first, whatever state the history is in
            if not no_history:
                keep_run(report, plan.scope, lambda: own_lock(plan.checklist, report, collected.facts))
