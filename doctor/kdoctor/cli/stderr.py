"""Standard streams: what a command prints, and how errors end it."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NoReturn, TextIO

from kdoctor.commands.again import called_here, in_same_environment
from kdoctor.engine.exit_codes import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_UNKNOWN, EXIT_USAGE
from kdoctor.errors import UsageError, is_exhausted, raised_in
from kdoctor.plugins.installed import packages_of_plugins
from kdoctor.run.log import note_terminal, warn
from kdoctor.text.sanitize import clean, clean_rendered

_service = [False]

_LIMITS_HINT = "Raise the limit of memory, processes or open files. To list those of the shell: ulimit -a"
_NO_TEMPORARY = "No usable temporary directory"  # from Python's tempfile
_NO_TEMPORARY_HINT = "Name a writable folder in TMPDIR. In a read-only container mount an emptyDir at /tmp."


class CommandInterrupted(Exception):  # noqa: N818 - an event, not an error
    """The user interrupted the command."""


def refuse_silent_exits() -> None:
    """Make ``os._exit`` raise: a plugin that calls it would end a check without a verdict, and with its exit code."""
    leave, process = os._exit, os.getpid()

    def refuse(status: int) -> NoReturn:
        if os.getpid() == process:
            raise RuntimeError(f"os._exit({status}) was called")
        leave(status)

    os._exit = refuse


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
        raise _end(in_same_environment(f"kdoctor: {error}", sys.argv), EXIT_USAGE) from None
    except BrokenPipeError:  # the reader of stdout has ended, as in `| head`
        _drop_stdout()
        raise SystemExit(EXIT_INTERNAL) from None
    except (KeyboardInterrupt, CommandInterrupted):
        raise _end("kdoctor: interrupted", EXIT_INTERRUPTED) from None
    except Exception as error:
        if os.environ.get("KDOCTOR_DEBUG"):
            raise
        if isinstance(error, FileNotFoundError) and _NO_TEMPORARY in str(error):
            raise _end(f"kdoctor: {error.strerror}\n{_NO_TEMPORARY_HINT}", EXIT_USAGE) from None
        if is_exhausted(error):
            raise _end(f"kdoctor: the system refuses resources: {error}\n{_LIMITS_HINT}", EXIT_UNKNOWN) from None
        raise _end(
            f"kdoctor: internal error: {type(error).__name__}: {error}\n"
            f"This is a bug in {_at_fault(error)}. Run again with KDOCTOR_DEBUG=1 for a traceback, and report it.",
            EXIT_INTERNAL,
        ) from None


def _at_fault(error: Exception) -> str:
    """kdoctor, or the plugin whose code was called."""
    package, line = raised_in(error, packages_of_plugins())
    return f"the plugin {package} ({line})" if package else "kdoctor"


def show(text: str, *, rendered: bool = False, document: bool = False) -> None:
    """Write to stdout, escaping what its encoding cannot represent. Commands of kdoctor are those that run here.

    Args:
        text: what to write. JSON and HTML, which begin with ``{`` and ``<``, are for programs: nothing in them changes.
        rendered: the text is in a format whose renderer has cleaned the values in it. Other text is cleaned here.
        document: it is a file in YAML, in which nothing changes either.

    Raises:
        UsageError: it cannot be written, such as on a full disk.
    """
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    with _as_usage_errors():
        shown = clean_rendered(text) if rendered else clean(text)
        sys.stdout.write(shown if document or shown.startswith(("{", "<")) else called_here(shown))
        sys.stdout.flush()


@contextmanager
def flushed_stdout() -> Iterator[None]:
    """Write what typer printed, such as the help, before Python ends. Python would ignore that it could not.

    Raises:
        UsageError: it cannot be written.
    """
    _give_buffer()
    try:
        yield
    finally:
        if not sys.stdout.closed:  # the server of MCP closes it
            with _as_usage_errors():
                sys.stdout.flush()


def _give_buffer() -> None:
    """Give stdout a buffer. With PYTHONUNBUFFERED, as in many containers, it has none, and a full disk loses text."""
    stream = sys.stdout
    if isinstance(getattr(stream, "buffer", None), io.RawIOBase):
        sys.stdout = open(  # noqa: SIM115 - for the whole process
            stream.fileno(), "w", encoding=stream.encoding, errors=stream.errors, closefd=False
        )


@contextmanager
def _as_usage_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_stdout()  # the rest of the buffer would fail again when Python ends
        raise UsageError(f"cannot write to stdout: {error.strerror or error}") from error


def standard_input() -> BinaryIO:
    """The bytes of stdin. Reading raises UsageError if it is closed."""
    stream: TextIO | None = sys.stdin
    note_terminal()
    return _ClosedInput() if stream is None else stream.buffer


class _ClosedInput(io.BytesIO):
    """A stdin that is closed: not an empty one."""

    def read(self, size: int | None = -1, /) -> bytes:  # noqa: ARG002 - the interface of streams
        raise UsageError("stdin is closed")

    read1 = read


def open_closed_streams() -> None:
    """Give a process that was started with closed standard streams the null device for them.

    Otherwise the next file that is opened, such as the history, gets the number of a standard stream, and a child
    process would write into it. ``sys.stdin`` stays None: a closed input is not an empty script.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
        if name != "stdin" and getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - for the whole process


def _drop_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
