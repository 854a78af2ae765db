"""What goes to stdout and stderr, and how errors end: one screen, an exit code, no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from kdoctor.engine.exit_codes import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_UNKNOWN, EXIT_USAGE
from kdoctor.errors import UsageError
from kdoctor.run.log import complain

__all__ = ["answer_as_service", "complain", "errors_in_words", "show"]

_service = [False]

_NO_TEMPORARY = "No usable temporary directory"  # the words of Python's tempfile
_NO_TEMPORARY_HINT = "Name a folder that can be written in TMPDIR; in a read-only container mount an emptyDir at /tmp."


def answer_as_service(wanted: bool) -> None:  # noqa: FBT001 - what it sets is a switch
    """Whether errors are to be told as a monitoring system reads them: on stdout, as the state UNKNOWN."""
    _service[0] = wanted


def _end(text: str, exit_code: int) -> SystemExit:
    """Say why the command ends, and how."""
    if _service[0]:
        show(f"KDOCTOR UNKNOWN - {' '.join(text.split())}\n".replace("|", "/"))
        return SystemExit(EXIT_UNKNOWN)
    complain(text, level="error", event="error")
    return SystemExit(exit_code)


@contextmanager
def errors_in_words() -> Iterator[None]:
    """No traceback for what a person can mend; a short one-line report for what is kdoctor's own fault."""
    try:
        yield
    except UsageError as error:
        raise _end(f"kdoctor: {error}", EXIT_USAGE) from None
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nobody is left to tell.
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
            f"kdoctor itself failed: {type(error).__name__}: {error}\n"
            "This is a defect of kdoctor. Run again with KDOCTOR_DEBUG=1 for the traceback, and report it.",
            EXIT_INTERNAL,
        ) from None


def show(text: str) -> None:
    """Write to stdout what it asked for, and nothing else, whatever its encoding is; nothing where it is closed.

    Raises:
        UsageError: it takes no more (a full disk).
    """
    stream: TextIO | None = sys.stdout
    if stream is None:
        return
    stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_stdout()  # what is left in its buffer would fail once more when Python ends
        raise UsageError(f"stdout cannot be written: {error.strerror or error}") from error


def _drop_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
