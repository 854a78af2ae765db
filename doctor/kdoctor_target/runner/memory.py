"""How much memory a process took."""

from __future__ import annotations

import sys
from typing import Any


def peak_memory(usage: Any) -> int:
    """The largest resident set in bytes: Linux counts in KiB, macOS in bytes."""
    return int(usage.ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
