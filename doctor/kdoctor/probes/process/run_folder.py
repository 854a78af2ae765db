"""Temporary folders that do not survive kdoctor: those of a killed run are removed by the next one."""

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator

_PREFIXES = ("kdoctor-smoke-", "kdoctor-import-", "kdoctor-rollback-", "kdoctor-wheel-")


@contextlib.contextmanager
def run_folder(kind: str) -> Iterator[str]:
    """A temporary folder for this run. Folders of killed runs of this user are removed first.

    A process that has not ended yet may still write into it, so errors of its removal are ignored.
    """
    remove_abandoned()
    while True:
        temporary = tempfile.TemporaryDirectory(prefix=f"kdoctor-{kind}-", ignore_cleanup_errors=True)
        with temporary as folder, _locked(folder) as locked:
            if locked is False:
                continue  # another run took it for abandoned before it was locked
            yield folder
        return


def remove_abandoned() -> None:
    """Remove the folders of this user's runs that were killed: the kernel released their locks."""
    if sys.platform == "win32":
        return
    try:
        with os.scandir(tempfile.gettempdir()) as entries:
            found = [entry.path for entry in entries if entry.name.startswith(_PREFIXES)]
    except OSError:
        return
    for path in found:
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                continue
            with _locked(path) as locked:
                if locked:
                    shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[bool | None]:
    """Lock a folder until the end of the block or of this process, without waiting.

    Yields whether that succeeded; None if the system or the file system has no locks.
    """
    if sys.platform == "win32":
        yield None
        return
    import fcntl  # noqa: PLC0415 - not on Windows

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            locked: bool | None = False
        except OSError:  # a network file system without locks
            locked = None
        else:
            locked = os.path.exists(folder)  # noqa: PTH110 - a string
        yield locked
    finally:
        os.close(descriptor)
