"""``kdoctor snapshot``."""

from pathlib import Path
from typing import Annotated

import typer

from kdoctor.catalog.load import load_catalog
from kdoctor.cli import options
from kdoctor.cli.added import Recording, added
from kdoctor.cli.conflicts import refuse_with
from kdoctor.cli.deliver import save
from kdoctor.cli.options import option
from kdoctor.engine.exit_codes import EXIT_INTERRUPTED
from kdoctor.output import check_writable
from kdoctor.run.plan import RunOptions
from kdoctor.run.session import examination


def snapshot(
    context: typer.Context,
    *,
    output: Annotated[Path | None, option("File to write. \\[default: stdout]", "--output", "-o")] = None,
    checklist: options.ChecklistOption = options.DEFAULT_CHECKLIST,
    python: options.PythonOption = None,
    no_smoke: options.NoSmokeOption = False,
    replicas: options.ReplicasOption = None,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT_S,
    plugin: options.PluginOption = None,
) -> None:
    """Record this machine's facts, or import output of other tools.

    User names, home folders and secrets are left out. To check it on any machine: kdoctor check --snapshot FILE.
    """
    recordings = added(context, Recording)
    ignored = {"--python": python, "--no-smoke": no_smoke, "--replicas": replicas, "--plugin": plugin}
    ignored["--checklist"] = checklist != options.DEFAULT_CHECKLIST
    for recording in recordings:
        refuse_with(recording.option, recording, ignored, why=recording.why)
    if output:
        check_writable(output)
    if recordings:
        save(output, recordings[0].read())
        return
    catalog = load_catalog(plugin or ())
    with examination(catalog.probes, python, timeout) as examined:
        plan = RunOptions(checklist=checklist, smoke=not no_smoke, replicas=replicas, use_lock=False).plan(catalog)
        examined.run(plan.trainings(replicas))
    save(output, examined.facts)
    if examined.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
