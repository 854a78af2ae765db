"""Finds and removes what a killed process leaves behind: its child processes and shared memory. Linux only (/proc).

A killed process closes its ports, but its children keep running, and objects in /dev/shm stay until they are unlinked.
NCCL unlinks its own, unless it is killed first. Files in /dev/shm that were there before the process, such as a user's
data, and files in its folders, such as those of a TMPDIR there, are not its objects.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Set

_PROC = Path("/proc")
_SHARED_MEMORY = "/dev/shm/"  # noqa: S108 - where Linux keeps it


class ProcessTree:
    """A process that is about to be killed, with its descendants and their shared memory.

    To be made while the process is still running.

    Args:
        pid: id of the process.
        earlier: ``shared_memory()`` before the process was started.
    """

    def __init__(self, pid: int, earlier: Set[str]) -> None:
        self._others = descendants(pid)
        self._memory = (_held({pid, *self._others}) & shared_memory()) - earlier

    def end(self) -> None:
        """Kill the descendants; the process itself is killed by its parent."""
        for pid in self._others:
            _kill(pid)

    def remove(self) -> None:
        """Once all of them are gone, remove the shared memory that no other process uses."""
        for path in self._memory - _held(_processes()) if self._memory else ():
            with contextlib.suppress(OSError):  # already removed, or another user's
                os.unlink(path)  # noqa: PTH108 - Python 3.8


def shared_memory() -> Set[str]:
    """Paths of what is in /dev/shm. An object of shm_open(3) is never in a folder of it."""
    try:
        return {_SHARED_MEMORY + name for name in os.listdir(_SHARED_MEMORY)}  # noqa: PTH208 - Python 3.8
    except OSError:
        return set()


def descendants(pid: int) -> List[int]:
    """Ids of the process's children, of their children, and so on."""
    children: Dict[int, List[int]] = {}
    for one in _processes():
        parent = _parent(one)
        if parent:
            children.setdefault(parent, []).append(one)
    found, todo = [], [pid]
    while todo:
        mine = children.get(todo.pop(), [])
        found += mine
        todo += mine
    return found


def end_adopted(known: Iterable[int]) -> None:
    """Kill every child that this process did not start: orphans of a case that has ended."""
    me, started = os.getpid(), set(known)
    for pid in [one for one in _processes() if one not in started and _parent(one) == me]:
        _kill(pid)
        with contextlib.suppress(OSError):
            os.waitpid(pid, os.WNOHANG)


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _processes() -> Iterator[int]:
    if _PROC.is_dir():
        for name in os.listdir(str(_PROC)):  # noqa: PTH208 - Python 3.8
            if name.isdigit():
                yield int(name)


def _parent(pid: int) -> int:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])  # the name before it may contain anything


def _held(pids: Iterable[int]) -> Set[str]:
    """Paths of the files that the processes have open, or mapped from /dev/shm."""
    held: Set[str] = set()
    for pid in pids:
        held.update(_mapped(pid))
        held.update(_open(pid))
    return held


def _mapped(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for line in (_PROC / str(pid) / "maps").read_text(errors="replace").splitlines():
            if _SHARED_MEMORY in line:
                yield line[line.index(_SHARED_MEMORY) :]


def _open(pid: int) -> Iterator[str]:
    folder = _PROC / str(pid) / "fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(str(folder)):  # noqa: PTH208 - Python 3.8
            with contextlib.suppress(OSError):
                yield os.readlink(str(folder / name))  # noqa: PTH115 - Python 3.8
