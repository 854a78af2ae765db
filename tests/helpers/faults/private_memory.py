"""A /dev/shm that only the runs of one test see, so that each file in it is theirs."""

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - it is replaced by an empty one
_MOUNT = """\
exec 3< "$1"
mount -t tmpfs tmpfs /dev/shm || exit
[ -d "$1" ] || { mkdir -p "$1" && mount -c --bind /proc/self/fd/3 "$1"; } || exit
echo mounted
exec cat
"""
"""The folder of the test stays where it is, also in /dev/shm. ``cat`` keeps the namespace until its stdin is closed,
which also happens if the test is killed."""


@dataclass(frozen=True)
class PrivateMemory:
    """The mount namespace with that /dev/shm, by the process that keeps it."""

    keeper: int
    folder: Path

    def enter(self) -> None:
        """Move this process into the namespace; its working folder stays. For ``preexec_fn``."""
        folder, library = Path.cwd(), ctypes.CDLL(None, use_errno=True)
        namespace = os.open(f"/proc/{self.keeper}/ns/mnt", os.O_RDONLY)
        if library.setns(namespace, 0):
            raise OSError(ctypes.get_errno(), "the mount namespace cannot be entered")
        os.close(namespace)
        os.chdir(folder)

    def files(self) -> Sequence[str]:
        """What is in it now."""
        kept = self.folder.relative_to(SHARED_MEMORY).parts[:1] if self.folder.is_relative_to(SHARED_MEMORY) else ()
        found = Path(f"/proc/{self.keeper}/root{SHARED_MEMORY}").iterdir()
        return sorted(item.name for item in found if item.name not in kept)


@contextlib.contextmanager
def private_memory(folder: Path) -> Iterator[PrivateMemory | None]:
    """An empty /dev/shm for processes that enter it; None where a file system cannot be mounted privately.

    Args:
        folder: of the test, which the processes see, too.
    """
    try:
        keeper = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "slave", "sh", "-c", _MOUNT, "sh", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        yield None
        return
    with keeper:
        assert keeper.stdout
        yield PrivateMemory(keeper.pid, folder) if keeper.stdout.readline() else None
