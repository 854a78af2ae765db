"""Applies a function to many files, in several processes where that is faster."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from kdoctor_lint.script import STDIN

Result = TypeVar("Result")
_ENOUGH_BYTES = 2_000_000  # Less is linted faster than processes start
_MOST_PROCESSES = 8


def in_order(function: Callable[[str], Result], files: Sequence[str], processes: int | None = None) -> Iterator[Result]:
    """The results in the order of the files, each as soon as it is there. With None, several processes if faster."""
    count = _worthwhile(files) if processes is None else processes
    done = 0
    if count > 1:
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - most runs need no processes
        from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

        try:
            with ProcessPoolExecutor(count, initializer=_start) as pool:
                for result in pool.map(function, files, chunksize=8):
                    yield result
                    done += 1
        except BrokenProcessPool:
            pass  # a process was killed, such as for its memory; the rest is done here
    for file in files[done:]:
        yield function(file)


def _worthwhile(files: Sequence[str]) -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    available = len(affinity(0)) if affinity else os.cpu_count() or 1
    count = min(available, len(files), _MOST_PROCESSES)
    sizes = (os.path.getsize(file) for file in files if os.path.isfile(file))  # noqa: PTH113, PTH202 - they never raise
    return count if count > 1 and STDIN not in files and sum(sizes) >= _ENOUGH_BYTES else 1


def _start() -> None:
    """Prepare a process. The main process handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
