"""Messages on stderr: plain text for people, or one JSON object per line for programs."""

import contextlib
import datetime as dt
import json
import sys
from dataclasses import dataclass
from typing import Any, Literal

from kdoctor.commands.again import called_here
from kdoctor.text.sanitize import clean

Level = Literal["info", "warning", "error"]


@dataclass
class _Style:
    """How this process logs. The command line sets it once."""

    as_json: bool = False
    quiet: bool = False


style = _Style()


def warn(text: str, *, level: Level = "warning", event: str = "note") -> None:
    """Write a message to stderr. Commands of kdoctor are those that run here."""
    text = called_here(clean(text))
    if style.as_json:
        log(event, level=level, message=text.removeprefix("kdoctor: "))
    else:
        _write(text)


def note_terminal() -> None:
    """Say that input is read from the terminal, if it is: without a prompt, nothing would show it."""
    if sys.stdin is not None and sys.stdin.isatty():
        warn("kdoctor: reading from the terminal; end with Ctrl-D")


def log(event: str, *, level: Level = "info", **fields: Any) -> None:
    """Write a JSON object with ``time`` (UTC, ISO 8601), ``level``, ``event`` and the fields; nothing for people."""
    if not style.as_json:
        return

    now = dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds")
    _write(json.dumps({"time": now, "level": level, "event": event, **fields}))


def _write(line: str) -> None:
    """Write a line to stderr. A message that cannot be written, as on a full disk, does not end the run."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(line, file=sys.stderr, flush=True)  # noqa: T201 - plain text never fails and never wraps
