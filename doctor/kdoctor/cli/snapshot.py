"""``kdoctor snapshot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
from kdoctor.cli.stderr import complain
from kdoctor.engine.catalog import load_catalog
from kdoctor.engine.exit_codes import EXIT_INTERRUPTED
from kdoctor.errors import UsageError
from kdoctor.output import check_writable
from kdoctor.run.plan import Wanted, examination, save, trainings
from kdoctor.snapshot.imports.importer import import_files


def snapshot(
    *,
    import_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Make the snapshot of this dump instead of this machine (repeatable): nvidia-smi's output (-q, -q -x, "
            "topo -m, nvlink -s, the table), lspci -vvv, a kernel log.",
            show_default=False,
        ),
    ] = None,
    more_files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Further dumps, after --import.", show_default=False),
    ] = None,
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
    if output:
        check_writable(output)
    if import_files or more_files:
        _import(output, import_files, more_files)
        return
    catalog = load_catalog(plugin or ())
    with examination(catalog.probes, python, timeout) as (examined, _):
        chosen, planned = Wanted(checklist=checklist, smoke=not no_smoke).plan(catalog)
        examined.run(trainings(chosen, planned, replicas))
    save(output, examined.facts)
    if examined.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


def _import(output: Path | None, files: list[Path] | None, more: list[Path] | None) -> None:
    """Write the snapshot that dumps of another machine give."""
    if not files:
        raise UsageError("a file was given without --import", hint="Write: kdoctor snapshot --import FILE [FILE]...")
    imported = import_files([*files, *(more or ())])
    for note in imported.notes:
        complain(f"kdoctor: {note}")
    save(output, imported.facts)
