"""A spinner with the latest note, on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status
from rich.text import Text


class Spinner:
    """Shows a note on one line, cut at the width of the terminal."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def note(self, text: str) -> None:
        """Show the current step."""
        self._status.update(Text(text, no_wrap=True, overflow="ellipsis"))


@contextmanager
def spinner() -> Iterator[Spinner]:
    """A spinner on stderr."""
    with Console(stderr=True).status("starting") as status:
        yield Spinner(status)
