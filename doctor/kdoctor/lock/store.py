"""Lock files: next to their checklist, replaced atomically."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from kdoctor.checklist.resolve import Checklist
from kdoctor.commands.shell import quoted
from kdoctor.inputs import read_bounded
from kdoctor.lock.document import Lock, loads, lock_error, text_of
from kdoctor.output import OutputError, write_atomically
from kdoctor.yamldoc.source import YamlSourceError, read_file

SUFFIX = ".lock.yaml"
_SCHEMA = re.compile(rb"^schema:\s*[\"']?kdoctor/lock/", re.MULTILINE)


def lock_path(checklist: Checklist) -> Path:
    """``NAME.lock.yaml`` next to the checklist; in the working folder for a shipped checklist."""
    if checklist.source == "shipped":
        return Path(f"{checklist.name}{SUFFIX}")
    file = Path(checklist.source)
    return file.with_name(f"{file.stem if file.suffix in ('.yaml', '.yml') else file.name}{SUFFIX}")


def is_lock(path: Path) -> bool:
    """Whether an existing file says that it is a lock.

    Raises:
        UsageError: it is too large, or not a file.
        OSError: it cannot be read.
    """
    return _SCHEMA.search(read_bounded(path)) is not None


def read_lock(path: Path) -> Lock:
    """Read a lock.

    Raises:
        LockError: it cannot be read, or is not a valid lock.
    """
    try:
        content = read_file(path, "lock")
    except YamlSourceError as error:
        raise lock_error(path, error.problem.message) from error
    return loads(content, str(path))


def load_lock(checklist: Checklist, path: Path | None = None) -> tuple[Path, Lock | None]:
    """The lock of a checklist: ``path`` if given, else the one next to it, which may be missing.

    Raises:
        LockError: it cannot be read, or belongs to another checklist.
    """
    chosen = path or lock_path(checklist)
    if path is None and not os.path.lexists(chosen):
        return chosen, None
    lock = read_lock(chosen)
    if lock.checklist != checklist.name:
        message = f"lock of checklist {lock.checklist!r}, expected {checklist.name!r}"
        raise lock_error(
            chosen,
            message,
            "Name another lock (--lock, rollback --to), or record one: "
            f"kdoctor checklist record {quoted(checklist.asked_as)}",
        )
    return chosen, lock


def write_lock(path: Path, lock: Lock, before: bytes | None) -> None:
    """Replace a lock atomically, unless another process did since ``before`` was read (None if there was none).

    Raises:
        OutputError: it cannot be written, or another run has recorded one.
    """
    with _one_at_a_time(path.parent):
        now = path.read_bytes() if path.exists() else None
        if now != before:
            raise OutputError(
                f"{path} was recorded by another run in the meantime; nothing was written",
                hint="Review it with git diff, then record again if needed",
            )
        write_atomically(path, text_of(lock))


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Keep other processes from replacing a lock in that folder between the comparison and the write."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:  # on Windows, two recorders within a millisecond can overwrite each other
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror or error}") from error
    try:
        # Some network file systems have no locks; the replacement is atomic anyway.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
