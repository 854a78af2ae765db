"""The output files of a case and of its processes, and the lines that are quoted from them.

A case writes three files: events (JSON lines), error output, and Python stacks. Unlike a pipe, a file survives a
process that crashes, never fills up, and works the same on every system.
"""

from __future__ import annotations

import faulthandler
import os
import re
import sys
from pathlib import Path
from typing import IO, Any, Dict, List

from kdoctor_target.runner.outcome import MESSAGE_CHARACTERS

TAIL_LINES = 40
TAIL_BYTES = 16 * 1024
MOST_COMPLAINTS = 10

_NCCL = re.compile(r"NCCL (?:WARN|ERROR)")
# NCCL's warnings, and errors and fatal ones of TensorFlow's log, which begin "2026-11-20 10:00:00.0: E tensorflow/...".
_COMPLAINT = re.compile(
    r"NCCL (?:WARN|ERROR)|nccl(?:Unhandled|System|Internal|Remote)\w*Error"
    r"|^\d{4}-\d\d-\d\d [\d:.]+: [EF] |^[EF]\d{4} [\d:.]+ "
)


class CaseFiles:
    """The files of one case."""

    def __init__(self, folder: Path, job: Dict[str, Any]) -> None:
        self.stem = folder / job["stem"]
        self.events, self.errors, self.stacks = (
            folder / f"{job['stem']}.{kind}" for kind in ("events", "stderr", "stacks")
        )
        for path in (self.events, self.errors, self.stacks):
            path.touch()

    def take_over(self) -> None:
        """Redirect this process's output here, in Python and in C, and give it an empty standard input."""
        redirect_output(self.errors)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def redirect_output(path: Path) -> None:
    """Send standard output and error output to a file, in Python and in C."""
    sys.stdout.flush()
    sys.stderr.flush()
    descriptor = os.open(str(path), os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)


_kept_open: List[IO[str]] = []
"""Files that ``faulthandler`` writes to, which Python must not close."""


def write_stacks_to(path: Path) -> IO[str]:
    """Write the stacks of all threads to that file on a crash; returns the file."""
    file = path.open("a")
    _kept_open.append(file)
    faulthandler.enable(file)
    return file


def tail(path: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a file of any size."""
    return "\n".join(_last_lines(path, TAIL_BYTES)[-lines:])


def complaints(path: Path) -> List[str]:
    """The last lines of error output in which native code reports errors, without duplicates.

    NCCL's first complaint is always included: it names the cause, and the later ones are consequences on every replica.
    """
    lines = _last_lines(path, 16 * TAIL_BYTES)
    found = list(dict.fromkeys(line[:MESSAGE_CHARACTERS] for line in lines if _COMPLAINT.search(line)))
    last = found[-MOST_COMPLAINTS:]
    cause = next((line for line in found if _NCCL.search(line)), None)
    return last if cause is None or cause in last else [cause, *last[1:]]


def _last_lines(path: Path, size: int) -> List[str]:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - size))
        return file.read().decode("utf-8", "replace").splitlines()
