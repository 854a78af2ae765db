"""How a program sends records to kdoctor while anything else may print to stdout."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO


class Channel:
    """The pipe to kdoctor: the original stdout, which is then closed to everybody else.

    Whatever prints to stdout afterwards, in Python or in C, reaches the error output.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        # A file name that is no UTF-8 must not break the record, nor the report that shows it.
        self._file: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
        os.dup2(2, 1)

    def send(self, record: Any) -> None:
        """Send one record.

        Raises:
            ValueError: it holds a NaN or an infinity, which JSON does not know.
        """
        self._file.write("\x1e" + json.dumps(record, allow_nan=False, ensure_ascii=False) + "\n")
        self._file.flush()
