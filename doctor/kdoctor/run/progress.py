"""What is going on, told on stderr while it goes on: a moving line on a terminal, silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.text import Text

from kdoctor.run import log as logs

_BAR_WIDTH = 16


class Progress(Protocol):
    """Takes short present-tense notes: what is being done now."""

    def note(self, text: str) -> None:
        """Show what is being done now."""
        ...


class Silent:
    """Shows nothing: for logs, cron and programs."""

    def note(self, text: str) -> None:
        """Show nothing."""


class _Line:
    """A spinner with the latest note."""

    def __init__(self, status: object) -> None:
        self._status = status

    def note(self, text: str) -> None:
        # One line, whatever its length: a second one would move what stands below up and down.
        self._status.update(Text(text, no_wrap=True, overflow="ellipsis"))  # type: ignore[attr-defined]


class _Logged:
    """A log's line for each note that says something new."""

    def __init__(self) -> None:
        self._last = ""

    def note(self, text: str) -> None:
        if text != self._last:
            logs.log("progress", message=text)
        self._last = text


def bar(done: int, total: int) -> str:
    """How much is done, as a short bar and in numbers."""
    filled = round(_BAR_WIDTH * done / total) if total else 0
    return f"{'━' * filled}{'─' * (_BAR_WIDTH - filled)} {done} of {total}:"


@contextmanager
def progress() -> Iterator[Progress]:
    """The progress that suits stderr."""
    if logs.style.as_json:
        yield _Logged()
        return
    if logs.style.quiet or not sys.stderr.isatty():
        yield Silent()
        return

    with Console(stderr=True).status("starting") as status:
        yield _Line(status)
