"""Where reports go: files that are checked before the run and written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kdoctor.errors import UsageError, did_you_mean

STDOUT = "-"
"""The file's name that means the standard output."""


class OutputError(UsageError):
    """A report or a snapshot cannot be written where it should go."""


@dataclass(frozen=True, kw_only=True)
class OutputFile:
    """A file that a report is to be written to, in a format of its own."""

    format: str
    path: Path


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Every place that a run's report goes to."""

    stdout: str
    """The format of the standard output."""
    files: tuple[OutputFile, ...] = ()


def parse_outputs(
    values: Sequence[str], formats: Sequence[str], *, stdout: str | None = None, default: str = "terminal"
) -> Outputs:
    """Read ``--format`` and every ``--output FORMAT=FILE``, and check that the files can be written.

    ``FORMAT=-`` is the standard output, which takes one report only.

    Args:
        values: the values of ``--output``.
        formats: names of the formats.
        stdout: the value of ``--format``, if it was given.
        default: the format of the standard output if nothing else is said.

    Raises:
        OutputError: a value cannot be read, or a file could not be written.
    """
    files: list[OutputFile] = []
    chosen = [_known(stdout, formats, f"--format {stdout}")] if stdout is not None else []
    for value in values:
        name, equals, file = value.partition("=")
        if not (equals and file):
            hint = f"Formats are {', '.join(formats)}; for example --output json=report.json"
            raise OutputError(f"--output {value}: expected FORMAT=FILE", hint=hint)
        known = _known(name, formats, f"--output {value}")
        if file == STDOUT:
            chosen.append(known)
        else:
            files.append(OutputFile(format=known, path=Path(file)))
    if len(chosen) > 1:
        raise OutputError(f"only one report can go to the standard output, not {' and '.join(chosen)}")
    _refuse_twice(files)
    for output in files:
        check_writable(output.path)
    return Outputs(stdout=chosen[0] if chosen else default, files=tuple(files))


def check_writable(path: Path) -> None:
    """Make sure, before minutes are spent, that :func:`write_atomically` will be able to write there.

    Raises:
        OutputError: it will not, and why.
    """
    target = _resolved(path)
    folder = target.parent
    with _in_words(path):
        if target.is_dir():
            raise OutputError(f"{path} is a folder, not a file", hint=f"Name a file in it, such as {path}/report")
        if not folder.exists():
            raise OutputError(f"{path}: the folder {folder} does not exist", hint=f"Make it with: mkdir -p '{folder}'")
        if not folder.is_dir():
            raise OutputError(f"{path}: {folder} is not a folder")
        if target.exists() and not os.access(target, os.W_OK):
            raise OutputError(f"{path} is there and may not be written")
        if _is_special(target):
            return
        descriptor, temporary = _temporary(folder)
        os.close(descriptor)
        temporary.unlink()


def write_atomically(path: Path, text: str) -> None:
    """Write a file whole, or leave what stood there as it was. An existing file keeps its mode.

    A link is followed. What is no regular file (a pipe, a device) is written directly.

    Raises:
        OutputError: it could not be written.
    """
    target = _resolved(path)
    content = text.encode("utf-8", "backslashreplace")
    with _in_words(path):
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


def _known(name: str, formats: Sequence[str], shown: str) -> str:
    if name not in formats:
        hint = f"Formats are {', '.join(formats)}"
        raise OutputError(f"{shown}: {name!r} is no format{did_you_mean(name, formats)}", hint=hint)
    return name


def _refuse_twice(files: Sequence[OutputFile]) -> None:
    seen: set[Path] = set()
    for output in files:
        target = _resolved(output.path)
        if target in seen:
            raise OutputError(f"--output names the file {output.path} twice")
        seen.add(target)


def _resolved(path: Path) -> Path:
    """The file that would be replaced: the end of a link, so that the link stays."""
    return Path(os.path.realpath(os.path.expanduser(path)))  # noqa: PTH111 - it never raises


def _is_special(target: Path) -> bool:
    return target.exists() and not target.is_file()


def _temporary(folder: Path) -> tuple[int, Path]:
    """A new file beside the target, with the mode that any new file has."""
    temporary = folder / f".kdoctor-{secrets.token_hex(8)}.tmp"
    return os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), temporary


@contextlib.contextmanager
def _in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
