"""How a case or one of its processes ended, by the names of ``SmokeCase``'s fields."""

from __future__ import annotations

import signal
import sys
from typing import Any, Dict

MESSAGE_CHARACTERS = 2000


def describe_error(error: BaseException) -> Dict[str, Any]:
    """The outcome of an exception: its class and its message."""
    message = str(error)[:MESSAGE_CHARACTERS]
    return {"outcome": "raised", "error_type": type(error).__name__, "error_message": message}


def describe_death(status: int) -> Dict[str, Any]:
    """The outcome of a process that ended without a result; a negative status is the number of a signal."""
    return {
        "outcome": "died",
        "exit_code": status if status >= 0 else None,
        "signal": _signal_name(-status) if status < 0 else None,
    }


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def peak_memory(usage: Any) -> int:
    """The largest resident set in bytes: Linux counts in KiB, macOS in bytes."""
    return int(usage.ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
