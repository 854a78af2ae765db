"""Where a lock lies: beside its checklist, read whole and replaced whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from kdoctor.checklist.resolve import Checklist
from kdoctor.lock.document import Lock, LockError, loads, text_of
from kdoctor.output import OutputError, write_atomically

SUFFIX = ".lock.yaml"


def lock_path(checklist: Checklist) -> Path:
    """``NAME.lock.yaml`` beside the checklist's file; of a shipped checklist, in the working folder."""
    if checklist.source == "shipped":
        return Path(f"{checklist.name}{SUFFIX}")
    file = Path(checklist.source)
    return file.with_name(f"{file.stem if file.suffix in ('.yaml', '.yml') else file.name}{SUFFIX}")


def read_lock(path: Path) -> Lock:
    """Read a lock.

    Raises:
        LockError: it cannot be read, or is no lock that can be trusted.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LockError(f"{path}: {error.strerror or error}") from error
    return loads(content, str(path))


def load_lock(checklist: Checklist, path: Path | None = None) -> tuple[Path, Lock | None]:
    """The lock of a checklist: the one that is named, else the one beside it, which may be missing.

    Raises:
        LockError: it cannot be read, or is another checklist's.
    """
    chosen = path or lock_path(checklist)
    if path is None and not os.path.lexists(chosen):
        return chosen, None
    lock = read_lock(chosen)
    if lock.checklist != checklist.name:
        raise LockError(
            f"{chosen}: this is the lock of checklist {lock.checklist!r}, not of {checklist.name!r}",
            hint="Name the right one (--lock; of rollback --to), or record one with: kdoctor checklist record",
        )
    return chosen, lock


def write_lock(path: Path, lock: Lock, before: bytes | None) -> None:
    """Replace a lock whole, unless somebody else did so since ``before`` was read (None: there was none).

    Raises:
        OutputError: it cannot be written, or another run recorded one meanwhile.
    """
    with _one_at_a_time(path.parent):
        now = path.read_bytes() if path.exists() else None
        if now != before:
            raise OutputError(
                f"{path} was recorded by another run meanwhile, and stays as that run wrote it",
                hint="See what it says with: git diff; then record again if need be",
            )
        write_atomically(path, text_of(lock))


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Keep others of us from replacing a lock in that folder between our look and our writing."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:  # Windows has none; two recorders within a millisecond are left to luck there
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror or error}") from error
    try:
        # Some network file systems know no locks; the replacement is whole all the same.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
