"""Standard streams: what a command prints, and how errors end it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from kdoctor.engine.exit_codes import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_UNKNOWN, EXIT_USAGE
from kdoctor.errors import UsageError
from kdoctor.run.log import warn
from kdoctor.text.sanitize import clean, clean_rendered

_service = [False]

_NO_TEMPORARY = "No usable temporary directory"  # from Python's tempfile
_NO_TEMPORARY_HINT = "Name a writable folder in TMPDIR. In a read-only container mount an emptyDir at /tmp."


def answer_as_service(wanted: bool) -> None:  # noqa: FBT001 - what it sets is a switch
    """Set whether errors are reported as monitoring systems expect: on stdout, as the state UNKNOWN."""
    _service[0] = wanted


def _end(text: str, exit_code: int) -> SystemExit:
    if _service[0]:
        show(f"KDOCTOR UNKNOWN - {' '.join(text.split())}\n".replace("|", "/"))
        return SystemExit(EXIT_UNKNOWN)
    warn(text, level="error", event="error")
    return SystemExit(exit_code)


@contextmanager
def report_errors() -> Iterator[None]:
    """End with a message and an exit code instead of a traceback."""
    try:
        yield
    except UsageError as error:
        raise _end(f"kdoctor: {error}", EXIT_USAGE) from None
    except BrokenPipeError:  # the reader of stdout has ended, as in `| head`
        _drop_stdout()
        raise SystemExit(EXIT_INTERNAL) from None
    except KeyboardInterrupt:
        raise _end("kdoctor: interrupted", EXIT_INTERRUPTED) from None
    except Exception as error:
        if os.environ.get("KDOCTOR_DEBUG"):
            raise
        if isinstance(error, FileNotFoundError) and _NO_TEMPORARY in str(error):
            raise _end(f"kdoctor: {error.strerror}\n{_NO_TEMPORARY_HINT}", EXIT_USAGE) from None
        raise _end(
            f"kdoctor: internal error: {type(error).__name__}: {error}\n"
            "This is a bug in kdoctor. Run again with KDOCTOR_DEBUG=1 for a traceback, and report it.",
            EXIT_INTERNAL,
        ) from None


def show(text: str, *, rendered: bool = False) -> None:
    """Write to stdout, escaping what its encoding cannot represent. Does nothing if stdout is closed.

    Args:
        text: what to write.
        rendered: the text is in a format whose renderer has cleaned the values in it. Other text is cleaned here.

    Raises:
        UsageError: it cannot be written, such as on a full disk.
    """
    stream: TextIO | None = sys.stdout
    if stream is None:
        return
    stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]
    try:
        stream.write(clean_rendered(text) if rendered else clean(text))
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_stdout()  # the rest of the buffer would fail again when Python ends
        raise UsageError(f"cannot write to stdout: {error.strerror or error}") from error


def _drop_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
