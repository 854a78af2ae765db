"""How a process of kdoctor's ends when the one that started it is gone."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Optional

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


def die_when_orphaned() -> None:
    """End this process and its cases once stdin ends, for then kdoctor is gone."""
    while os.read(0, 1024):
        pass
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def end_with_the_parent(expected_parent: Optional[int]) -> None:
    """Have Linux end this process when its parent dies, even if Python's lock is held by a hang."""
    if not _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL)):
        return
    if expected_parent is not None and os.getppid() != expected_parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Have Linux give this process whatever a case leaves behind, so that it can be ended."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> bool:
    """Whether Linux has been told."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        return False
    return True
