"""Sends records to kdoctor over stdout, separate from anything else that is printed."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any, TextIO


class Channel:
    """The pipe to kdoctor: the original stdout.

    Anything printed to stdout afterwards, in Python or in C, goes to the error output.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        # A file name that is not UTF-8 must not break the record or the report.
        self._file: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
        os.dup2(2, 1)

    def send(self, record: Any) -> None:
        """Send one record.

        Raises:
            ValueError: it contains a NaN or an infinity, which JSON cannot represent.
        """
        text = json.dumps(record, allow_nan=False, ensure_ascii=False)
        with contextlib.suppress(UnicodeEncodeError):
            # Names that are UTF-8 are bytes without a meaning for a Python whose locale is ASCII.
            text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        self._file.write("\x1e" + text + "\n")
        self._file.flush()
