"""Makes sure that kdoctor's processes end when the process that started them is gone."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Optional

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


def die_when_orphaned() -> None:
    """End this process and its cases when stdin closes, because kdoctor is gone then."""
    while os.read(0, 1024):
        pass
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def end_with_parent(expected_parent: Optional[int]) -> bool:
    """Let Linux end this process when its parent dies, even if a hang holds the GIL; False on other systems."""
    if not _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL)):
        return False
    if expected_parent is not None and os.getppid() != expected_parent:
        os._exit(1)
    return True


def watch_parent(parent: int) -> None:
    """End this process when its parent dies, on any system."""
    if not end_with_parent(parent):
        threading.Thread(target=_poll_parent, args=(parent,), daemon=True).start()


def _poll_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def adopt_orphans() -> None:
    """Let Linux make this process the parent of whatever a case leaves behind, so that it can be ended."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> bool:
    """Whether the call could be made: on Linux only."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        return False
    return True
