"""What goes to stdout and stderr, and how errors end: one screen, an exit code, no traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kdoctor.errors import UsageError


@contextmanager
def errors_in_words() -> Iterator[None]:
    """No traceback for what a person can mend; a short one-line report for what is kdoctor's own fault."""
    import os

    from kdoctor.exit_codes import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_USAGE

    try:
        yield
    except UsageError as error:
        complain(f"kdoctor: {error}")
        raise SystemExit(EXIT_USAGE) from None
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(EXIT_INTERNAL) from None
    except KeyboardInterrupt:
        complain("kdoctor: interrupted")
        raise SystemExit(EXIT_INTERRUPTED) from None
    except Exception as error:
        if os.environ.get("KDOCTOR_DEBUG"):
            raise
        complain(
            f"kdoctor itself failed: {type(error).__name__}: {error}\n"
            "This is a defect of kdoctor. Run again with KDOCTOR_DEBUG=1 for the traceback, and report it."
        )
        raise SystemExit(EXIT_INTERNAL) from None


def complain(text: str) -> None:
    """Say on stderr what is wrong."""
    print(text, file=sys.stderr)  # noqa: T201 - plain, so that it never fails and never wraps


def show(text: str) -> None:
    """Write to stdout what it asked for, and nothing else, whatever its encoding is."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.stdout.write(text)
    sys.stdout.flush()
