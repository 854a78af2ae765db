"""The files of a case, and what is quoted from them.

Every case writes to three files of its own: events (JSON lines), error output, and Python stacks. Files
outlive a process that crashes, never fill up as a pipe does, and are the same on every system.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any, Dict, List

from kdoctor_target.runner.errors import MESSAGE_CHARACTERS

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
            folder / "{}.{}".format(job["stem"], kind) for kind in ("events", "stderr", "stacks")
        )
        for path in (self.events, self.errors, self.stacks):
            path.touch()

    def take_over(self) -> None:
        """Make this process write its output here, in Python and in C, and read nothing."""
        sys.stdout.flush()
        sys.stderr.flush()
        errors = os.open(str(self.errors), os.O_WRONLY | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(errors, 1)
        os.dup2(errors, 2)


def tail(path: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a file that may be of any size."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-lines:])


def complaints(path: Path) -> List[str]:
    """The last lines of the error output in which native code complains, each once; the first of NCCL's is among them.

    NCCL says what is wrong first, and then what follows from it, on every replica.
    """
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 16 * TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    found = list(dict.fromkeys(line[:MESSAGE_CHARACTERS] for line in lines if _COMPLAINT.search(line)))
    last = found[-MOST_COMPLAINTS:]
    cause = next((line for line in found if _NCCL.search(line)), None)
    return last if cause is None or cause in last else [cause, *last[1:]]
