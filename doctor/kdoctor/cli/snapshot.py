"""``kdoctor snapshot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kdoctor.cli.examine import examine, load, save
from kdoctor.cli.options import (
    DEFAULT_CHECKLIST,
    DEFAULT_TIMEOUT_S,
    ChecklistOption,
    NoSmokeOption,
    PluginOption,
    PythonOption,
    ReplicasOption,
    TimeoutOption,
)


def snapshot(
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; stdout otherwise.", show_default=False)
    ] = None,
    checklist: ChecklistOption = DEFAULT_CHECKLIST,
    python: PythonOption = None,
    no_smoke: NoSmokeOption = False,
    replicas: ReplicasOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
    plugin: PluginOption = None,
) -> None:
    """Record the facts of this machine, with the trainings that the checklist asks for, as JSON.

    User names, home folders and secrets are left out. Judge it anywhere with kdoctor check --snapshot.
    """
    from kdoctor.checklist import plan
    from kdoctor.judge import EXIT_INTERRUPTED
    from kdoctor.output import check_writable

    if output:
        check_writable(output)
    catalog, chosen = load(checklist, plugin)
    planned = plan(chosen, catalog, smoke=not no_smoke)
    examination, _ = examine(catalog, chosen, planned, python, replicas, timeout)
    save(output, examination.facts)
    if examination.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
