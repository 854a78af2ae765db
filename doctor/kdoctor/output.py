"""Output files: checked before a run and written atomically."""

import contextlib
import errno
import os
import re
import secrets
import shlex
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from kdoctor.errors import UsageError, did_you_mean
from kdoctor.records import record

STDOUT = "-"
"""File name of the standard output."""
_OF_ENDINGS = {"md": "markdown", "xml": "junit", "htm": "html", "prom": "prometheus"}
"""Formats by the endings of their files, where these differ."""
_READER_S = 5.0
"""Seconds that a named pipe may be without a reader."""


class OutputError(UsageError):
    """A file cannot be written."""


@record
class OutputFile:
    """A file for a report, and its format."""

    format: str
    path: Path


@record
class Outputs:
    """Where the report of a run is written."""

    stdout: str
    """The format of the standard output."""
    files: tuple[OutputFile, ...] = ()


def parse_outputs(
    values: Sequence[str], formats: Sequence[str], *, stdout: str | None = None, default: str = "terminal"
) -> Outputs:
    """Parse ``--format`` and ``--output FORMAT=FILE``, and check that the files can be written.

    ``FORMAT=-`` is the standard output, which takes one report.

    Args:
        values: the values of ``--output``.
        formats: names of the formats.
        stdout: the value of ``--format``, if any.
        default: the format of the standard output without ``--format``.

    Raises:
        OutputError: a value is invalid, or a file cannot be written.
    """
    files: list[OutputFile] = []
    chosen = [_known(stdout, formats, f"--format {stdout}")] if stdout is not None else []
    together = rf",(?=(?:{'|'.join(formats)})=)"  # html=a.html,json=a.json
    for value in (one for given in values for one in re.split(together, given)):
        name, equals, file = value.partition("=")
        if not (equals and file):
            ending = Path(value).suffix[1:]
            ending = _OF_ENDINGS.get(ending, ending)
            example = f"{ending}={shlex.quote(value)}" if ending in formats else "json=report.json"
            hint = f"Available formats: {', '.join(formats)}. Example: --output {example}"
            raise OutputError(f"--output {value}: expected FORMAT=FILE", hint=hint)
        known = _known(name, formats, f"--output {value}")
        if file == STDOUT:
            chosen.append(known)
        else:
            files.append(OutputFile(format=known, path=Path(file)))
    if len(chosen) > 1:
        raise OutputError(f"only one report can be written to stdout, not {' and '.join(chosen)}")
    _refuse_twice(files)
    for output in files:
        check_writable(output.path)
    return Outputs(stdout=chosen[0] if chosen else default, files=tuple(files))


def check_writable(path: Path, *, create_folder: bool = False) -> None:
    """Check that :func:`write_atomically` can write a file, before a run takes minutes. Its folder can be created.

    Raises:
        OutputError: it cannot, and why.
    """
    target = _resolved(path)
    folder = target.parent
    with _as_output_errors(path):
        if target.is_dir():
            raise OutputError(f"{path} is a folder, not a file", hint=f"Name a file in it, such as {path}/report")
        if create_folder:
            folder.mkdir(parents=True, exist_ok=True)
        if not folder.exists():
            raise OutputError(
                f"{path}: the folder {folder} does not exist", hint=f"Create it: mkdir -p {shlex.quote(str(folder))}"
            )
        if not folder.is_dir():
            raise OutputError(f"{path}: {folder} is not a folder")
        if target.exists() and not os.access(target, os.W_OK):
            raise OutputError(f"{path} is read-only")
        if _is_special(target):
            return
        descriptor, temporary = _temporary(folder)
        os.close(descriptor)
        temporary.unlink()


def write_atomically(path: Path, text: str | bytes) -> None:
    """Replace a file atomically. An existing file keeps its mode.

    Links are followed. Pipes and devices are written directly.

    Raises:
        OutputError: it could not be written.
    """
    target = _resolved(path)
    content = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    with _as_output_errors(path):
        if target.is_fifo():
            _write_to_pipe(target, content)
            return
        if _is_special(target):
            target.write_bytes(content)
            return
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        descriptor, temporary = _temporary(target.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if mode is not None:
                temporary.chmod(mode)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def _write_to_pipe(pipe: Path, content: bytes) -> None:
    """Write to a named pipe. Opening one waits for a reader, so a pipe without one would hold the run for ever."""
    deadline = time.monotonic() + _READER_S
    while True:
        try:
            descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > deadline:
                raise OutputError(f"cannot write {pipe}: no process reads this pipe") from error
            time.sleep(0.05)
            continue
        os.set_blocking(descriptor, True)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        return


def _known(name: str, formats: Sequence[str], shown: str) -> str:
    if name not in formats:
        near = did_you_mean(_OF_ENDINGS.get(name, name), formats)
        raise OutputError(f"{shown}: unknown format {name!r}{near}", hint=f"Available formats: {', '.join(formats)}")
    return name


def _refuse_twice(files: Sequence[OutputFile]) -> None:
    seen: set[Path] = set()
    for output in files:
        target = _resolved(output.path)
        if target in seen:
            raise OutputError(f"--output names the file {output.path} twice")
        seen.add(target)


def _resolved(path: Path) -> Path:
    """The file to replace: the target of a link."""
    return Path(os.path.realpath(os.path.expanduser(path)))  # noqa: PTH111 - it never raises


def _is_special(target: Path) -> bool:
    return target.exists() and not target.is_file()


def _temporary(folder: Path) -> tuple[int, Path]:
    """A new file in the target's folder, with the default mode."""
    temporary = folder / f".kdoctor-{secrets.token_hex(8)}.tmp"
    return os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), temporary


@contextlib.contextmanager
def _as_output_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
