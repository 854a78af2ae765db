"""``kdoctor diagnose``."""

import os
import sys
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer

from kdoctor.catalog.load import load_catalog, load_probes
from kdoctor.cli import options
from kdoctor.cli.stderr import show, standard_input
from kdoctor.commands.shell import quoted
from kdoctor.engine.exit_codes import EXIT_FAIL
from kdoctor.errors import UsageError
from kdoctor.facts import Gpus
from kdoctor.history.diagnoses import keep_diagnosis
from kdoctor.output import parse_outputs, write_atomically
from kdoctor.plugins.installed import load, offers
from kdoctor.run.log import warn
from kdoctor.text.canvas import PLAIN, canvas_for
from kdoctor_diagnose.against import compare
from kdoctor_diagnose.confirm import confirm
from kdoctor_diagnose.diagnose import TIMEOUT_S
from kdoctor_diagnose.diagnose import diagnose as diagnose_logs
from kdoctor_diagnose.inputs import logs_of
from kdoctor_diagnose.report.formats import FORMATS, render

_MOST_OF_A_MACHINE = 4 << 20
"""Bytes of the largest file that is tried as output of nvidia-smi and the like."""


def diagnose(
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LOG", help="Logs, notebooks, .gz files or folders of one job; - for stdin.", show_default=False
        ),
    ] = None,
    *,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LOG",
            help="Also say what is new since the logs of a run that worked (repeatable).",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Also run the checks that confirm the cause on this machine.")
    ] = False,
    format: Annotated[  # noqa: A002 - the option's name
        str | None, options.format_option(FORMATS, options.OUTPUT)
    ] = None,
    output: options.OutputOption = None,
    verbose: options.VerboseOption = 0,
    timeout: Annotated[
        float,
        typer.Option(
            min=1,
            callback=options.check_time_limit,
            help="Time limit for reading the logs, and for --check, in seconds.",
        ),
    ] = TIMEOUT_S,
    python: options.PythonOption = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Keep the diagnosis in the run history, with the run before it.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    plugin: options.PluginOption = None,
) -> None:
    """Find out from its logs why a job failed.

    It names the first known failure with the line that shows it, what to do, and
    the checks that confirm it. Name the logs of all processes of the job, and the
    kernel log (dmesg) if there is one. Logs are only read.

    Exit codes: 0 a cause was found, or the logs show no failure; 1 the failure is
    not known, only what followed from it or not how the job ended is in the logs,
    or a part was not read; 2 usage error.
    """
    if not logs:
        raise UsageError("no logs given (- for stdin)", hint="Example: kdoctor diagnose train.log")
    outputs = parse_outputs(output or (), tuple(FORMATS), stdout=format)
    catalog = load_catalog(plugin or ())
    found, notes = logs_of(logs, standard_input())
    diagnosis = diagnose_logs(found, catalog.checks, catalog.scenarios, notes=notes, timeout_s=timeout)
    if against:
        good, more = logs_of(against, BytesIO())
        difference = compare(found, good)
        diagnosis = diagnosis.model_copy(update={"against": difference, "notes": [*diagnosis.notes, *more]})
    if check:
        probes = load_probes(plugin or ())
        diagnosis = confirm(diagnosis, catalog, probes, python=python, timeout_s=timeout)
    if diagnosis.conclusion in ("not-recognised", "no-end") and not diagnosis.own:
        for name in (one for one in logs if one.endswith(".py")):
            warn(f"kdoctor: {name} is a script, not a log. To examine it: kdoctor lint {quoted(name)}")
        for name in filter(_shows_a_machine, logs):
            warn(f"kdoctor: {name} shows a machine, not a job. To judge it: kdoctor check --snapshot {quoted(name)}")
    if keep:
        cause, names = diagnosis.first.id if diagnosis.first else "", [log.name for log in diagnosis.logs]
        kept = {"document": diagnosis.to_json(), "conclusion": diagnosis.conclusion, "cause": cause}
        note = keep_diagnosis(logs=names, environ=os.environ, **kept)
        warn(f"kdoctor: {note}") if note else None
    for item in outputs.files:
        write_atomically(item.path, render(diagnosis, item.format, replace(PLAIN, verbosity=verbose)))
    canvas = replace(canvas_for(sys.stdout, os.environ), verbosity=verbose)
    show(render(diagnosis, outputs.stdout, canvas))
    if diagnosis.conclusion in ("not-recognised", "not-read", "no-end", "consequence"):
        raise typer.Exit(EXIT_FAIL)


def _shows_a_machine(name: str) -> bool:
    """Whether a plugin reads GPUs from a file, such as the output of nvidia-smi. Logs that are large are not tried."""
    for entry in offers("recordings"):
        with suppress(UsageError, OSError):
            if Path(name).stat().st_size > _MOST_OF_A_MACHINE:
                continue
            return isinstance(load(entry)(Path(name)).get(Gpus), Gpus)
    return False
