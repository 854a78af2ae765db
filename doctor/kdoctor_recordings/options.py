"""The options of ``kdoctor snapshot`` that name output of other tools."""

from pathlib import Path
from typing import Annotated

import typer

from kdoctor.cli.added import Recording
from kdoctor.cli.options import option
from kdoctor.errors import UsageError
from kdoctor.facts import Facts, Gpus
from kdoctor.run.log import warn
from kdoctor_recordings.facts import ImportedLines
from kdoctor_recordings.importer import import_files


def imported(
    *,
    first_files: Annotated[
        list[Path] | None,
        option(
            "Make the snapshot from command output instead of this machine (repeatable): nvidia-smi (its table, "
            "-q, -q -x, topo -m, nvlink -s), lspci -vvv, a kernel log.",
            "--import",
            metavar="FILE",
        ),
    ] = None,
    more_files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Further files for --import.", show_default=False)
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="List the lines of --import that were not understood.")
    ] = False,
) -> Recording | None:
    """The facts in these files.

    Raises:
        UsageError: files are named without the option.
    """
    if not first_files:
        if more_files:
            raise UsageError("FILE requires --import", hint="Example: kdoctor snapshot --import FILE [FILE]...")
        return None
    return Recording(
        option="--import",
        why="Command output is imported without examining this machine.",
        read=lambda: _read([*first_files, *(more_files or ())], verbose=verbose),
    )


def recorded(path: Path) -> Facts:
    """The facts in a file or folder that is named where a snapshot is expected."""
    return _read([path], verbose=False)


def _read(files: list[Path], *, verbose: bool) -> Facts:
    found = import_files(files)
    for note in found.notes:
        warn(f"kdoctor: {note}")
    if verbose:
        _list_unread(found.facts)
    return found.facts


def _list_unread(facts: Facts) -> None:
    unread, gpus = facts.get(ImportedLines), facts.get(Gpus)
    for line in unread.lines if isinstance(unread, ImportedLines) else ():
        warn(f"{line.file}:{line.line}: not understood: {line.text}")
    if isinstance(unread, ImportedLines) and unread.count > len(unread.lines):
        warn(f"and {unread.count - len(unread.lines)} more")
    for text in gpus.not_understood if isinstance(gpus, Gpus) else ():
        warn(f"not understood: {text}")
