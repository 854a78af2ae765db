"""The facts of this machine, or of a recorded one: a snapshot, or output of other tools that a plugin reads as one."""

import codecs
import datetime as dt
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kdoctor.catalog.load import Catalog
from kdoctor.errors import UsageError
from kdoctor.inputs import exists, is_folder, read_bounded
from kdoctor.plugins.installed import load as load_plugin
from kdoctor.plugins.installed import offers
from kdoctor.run.log import note_terminal, warn
from kdoctor.run.session import Collected, RequestedTraining, examination
from kdoctor.snapshot.document import Snapshot, load

STDIN = Path("-")
_START = 1024
"""Bytes at the beginning of a file that show whether it may be a snapshot."""


def collect(
    catalog: Catalog,
    snapshot: Path | None,
    python: str | None,
    timeout: float,
    trainings: Sequence[RequestedTraining] = (),
) -> Collected:
    """Read the snapshot if one is named; else read this machine and train.

    Raises:
        KeyboardInterrupt: the user interrupted it, and no trainings were requested. Partial facts are useless then.
    """
    if snapshot:
        return read_snapshot(snapshot, catalog)
    with examination(catalog.probes, python, timeout) as examined:
        examined.run(trainings)
    if examined.interrupted and not trainings:
        raise KeyboardInterrupt
    return examined.collected


def read_snapshot(path: Path, catalog: Catalog) -> Collected:
    """The facts of a snapshot, or of a file that a plugin reads as one. Notes about it go to stderr.

    Args:
        path: a file or folder; a pipe; ``-`` for stdin.
        catalog: knows the groups of facts.

    Raises:
        UsageError: it is neither.
    """
    started_at, started = dt.datetime.now(dt.timezone.utc), time.monotonic()
    shown = "stdin" if path == STDIN else str(path)
    with _lasting(path) as file:
        try:
            readers = [] if _may_be_snapshot(file) else offers("recordings")
            recorded = Snapshot.now(load_plugin(readers[0])(file)) if readers else load(file, catalog.fact_groups)
        except UsageError as error:
            raise UsageError(error.message.replace(str(file), shown), hint=error.hint) from error
    for note in recorded.notes:
        warn(f"kdoctor: {shown}: {note}")
    return Collected(
        facts=recorded.facts,
        target=f"recorded in {shown}",
        started_at=started_at,
        duration_s=time.monotonic() - started,
        from_snapshot=True,
        recorded_at=recorded.created_at,
    )


@contextmanager
def _lasting(path: Path) -> Iterator[Path]:
    """The file, or a copy of what stdin or a pipe gives only once."""
    is_file = os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises for a name that cannot be one
    if path != STDIN and (is_file or is_folder(path) or not exists(path)):
        yield path
        return
    if path == STDIN:
        note_terminal()
    content = read_bounded(Path("/dev/stdin") if path == STDIN else path)
    with TemporaryDirectory(prefix="kdoctor-") as folder:
        copy = Path(folder) / "recording"
        copy.write_bytes(content)
        yield copy


def _may_be_snapshot(path: Path) -> bool:
    """Whether it begins as JSON does, or cannot be read, which the reader of snapshots reports."""
    try:
        if path.is_dir():
            return False
        if not path.is_file():
            return True
        with path.open("rb") as file:
            start = file.read(_START).removeprefix(codecs.BOM_UTF8).lstrip()
    except OSError:
        return True
    return not start or (start.startswith(b"{") and b'"schema"' in start)
