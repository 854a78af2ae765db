"""Progress on stderr: a status line on a terminal, nothing elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from kdoctor.run.log import log, style

_BAR_WIDTH = 16


class Progress(Protocol):
    """Takes short texts about the current step."""

    def note(self, text: str) -> None:
        """Show the current step."""
        ...


class _Silent:
    def note(self, text: str) -> None:
        pass


class _Logged:
    """A line of the JSON log for each new note."""

    def __init__(self) -> None:
        self._last = ""

    def note(self, text: str) -> None:
        if text != self._last:
            log("progress", message=text)
        self._last = text


def bar(done: int, total: int) -> str:
    """A short progress bar with numbers."""
    filled = round(_BAR_WIDTH * done / total) if total else 0
    return f"{'━' * filled}{'─' * (_BAR_WIDTH - filled)} {done} of {total}:"


@contextmanager
def progress() -> Iterator[Progress]:
    """The kind of progress that suits stderr."""
    if style.as_json:
        yield _Logged()
        return
    if style.quiet or sys.stderr is None or not sys.stderr.isatty():
        yield _Silent()
        return
    from kdoctor.run.spinner import spinner  # noqa: PLC0415 - importing rich takes as long as many a command

    with spinner() as line:
        yield line
