"""``kdoctor snapshot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kdoctor.cli import options
from kdoctor.cli.conflicts import refuse_with
from kdoctor.cli.deliver import save
from kdoctor.engine.exit_codes import EXIT_INTERRUPTED
from kdoctor.errors import UsageError
from kdoctor.facts import Facts, Gpus, ImportedLines
from kdoctor.output import check_writable
from kdoctor.plugins.catalog import load_catalog
from kdoctor.run.log import warn
from kdoctor.run.plan import RunOptions
from kdoctor.run.session import examination
from kdoctor.snapshot.imports.importer import import_files


def snapshot(
    *,
    first_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Make the snapshot from command output instead of this machine (repeatable): nvidia-smi (its table, "
            "-q, -q -x, topo -m, nvlink -s), lspci -vvv, a kernel log.",
            show_default=False,
        ),
    ] = None,
    more_files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Further files for --import.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. \\[default: stdout]", show_default=False)
    ] = None,
    checklist: options.ChecklistOption = options.DEFAULT_CHECKLIST,
    python: options.PythonOption = None,
    no_smoke: options.NoSmokeOption = False,
    replicas: options.ReplicasOption = None,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT_S,
    plugin: options.PluginOption = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="List the lines of --import that were not understood.")
    ] = False,
) -> None:
    """Record the facts of this machine as JSON, including the checklist's trainings.

    User names, home folders and secrets are left out. To check it on any machine: kdoctor check --snapshot FILE.
    """
    ignored = {"--python": python, "--no-smoke": no_smoke, "--replicas": replicas, "--plugin": plugin}
    ignored["--checklist"] = checklist != options.DEFAULT_CHECKLIST
    refuse_with("--import", first_files, ignored, why="Command output is imported without examining this machine.")
    if output:
        check_writable(output)
    if more_files and not first_files:
        raise UsageError("FILE requires --import", hint="Example: kdoctor snapshot --import FILE [FILE]...")
    if first_files:
        imported = import_files([*first_files, *(more_files or ())])
        for note in imported.notes:
            warn(f"kdoctor: {note}")
        if verbose:
            _list_unread(imported.facts)
        save(output, imported.facts)
        return
    catalog = load_catalog(plugin or ())
    with examination(catalog.probes, python, timeout) as examined:
        plan = RunOptions(checklist=checklist, smoke=not no_smoke, replicas=replicas, use_lock=False).plan(catalog)
        examined.run(plan.trainings(replicas))
    save(output, examined.facts)
    if examined.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


def _list_unread(facts: Facts) -> None:
    """Write the lines of imported output that were not understood to stderr."""
    unread, gpus = facts.get(ImportedLines), facts.get(Gpus)
    for line in unread.lines if isinstance(unread, ImportedLines) else ():
        warn(f"{line.file}:{line.line}: not understood: {line.text}")
    if isinstance(unread, ImportedLines) and unread.count > len(unread.lines):
        warn(f"and {unread.count - len(unread.lines)} more")
    for text in gpus.not_understood if isinstance(gpus, Gpus) else ():
        warn(f"not understood: {text}")
