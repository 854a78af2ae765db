"""What a process that is ended may leave behind: processes that it started, and shared memory. Read from Linux's /proc.

A process that is killed closes its ports, but what it started lives on, and an object in /dev/shm stays until someone
takes its name away: NCCL does so itself, unless it is killed first. Elsewhere than on Linux nothing is found.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Set

_PROC = Path("/proc")
_SHARED_MEMORY = "/dev/shm/"  # noqa: S108 - where Linux keeps it


class Leftovers:
    """A process that is about to be ended, with everything that it started and holds."""

    def __init__(self, pid: int) -> None:
        """Look for them, while the process is still there to be asked."""
        self._others = descendants(pid)
        self._memory = _held({pid, *self._others})

    def end(self) -> None:
        """End what it started. The process itself is its parent's to end."""
        for pid in self._others:
            _kill(pid)

    def remove(self) -> None:
        """Once all of them are gone: remove the shared memory that nobody else holds."""
        for path in self._memory - _held(_processes()) if self._memory else ():
            with contextlib.suppress(OSError):  # gone by itself, or another user's
                os.unlink(path)  # noqa: PTH108 - Python 3.8


def descendants(pid: int) -> List[int]:
    """What the process started, and what that started."""
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
    """End every child of this process that it did not start itself: orphans of a case that has ended."""
    me, own = os.getpid(), set(known)
    for pid in [one for one in _processes() if one not in own and _parent(one) == me]:
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
    return int(text.rpartition(")")[2].split()[1])  # the name before it may hold anything


def _held(pids: Iterable[int]) -> Set[str]:
    """Objects of /dev/shm that the processes have mapped or open and that still have a name."""
    held: Set[str] = set()
    for pid in pids:
        held.update(_mapped(pid))
        held.update(_open(pid))
    return {path for path in held if path.startswith(_SHARED_MEMORY) and not path.endswith(" (deleted)")}


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
