"""The logs to read: files, gzip files, notebooks, folders and the standard input, as blocks of bytes."""

import codecs
import gzip
import itertools
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO

from kdoctor.errors import UsageError, about_missing_file
from kdoctor.inputs import exists, expanded, is_folder, is_foreign, read_bounded, refuse_special
from kdoctor.text.lists import counted
from kdoctor.text.wrap import shorten

STDIN = "-"
_LONGEST_NAME = 200
"""Characters of a name in an error."""
BLOCK = 1 << 20
_FILES = 200
"""Logs of a folder."""
_ENTRIES = 20_000
"""Entries of a folder that are looked at."""
_NOTEBOOK_BYTES = 200 << 20
_UNPACKED_BYTES, _UNPACKED_SHARE = 256 << 20, 100
"""Bytes up to which a gzip file is unpacked, or this multiple of its size if that is more. The format can reach 1,032
times (https://zlib.net/zlib_tech.html), so that 3 MB would be read for minutes."""
_SUFFIXES = (".log", ".out", ".err", ".txt", ".stdout", ".stderr", ".ipynb", ".dmesg", ".messages")
_NAMES = ("log", "stdout", "stderr", "dmesg", "syslog", "messages", "nohup.out")
_SAMPLE = 4096
_GZIP = b"\x1f\x8b"
_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\r\f\b\x1b"))
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class PartlyReadError(Exception):
    """The rest of a log is not read; the message says why."""


@dataclass(frozen=True)
class Log:
    """A log and how to read it."""

    name: str
    blocks: Callable[[], Iterator[bytes]]
    """Reads it. Raises ``UsageError`` if it cannot, and ``PartlyReadError`` after what is read."""
    is_finished: Callable[[], bool] = bool
    """Whether it shows, besides its lines, that what was run ended without an exception."""
    passed: Callable[[], int] = int
    """The number of its first lines after which it is sure that what was run went on."""


def logs_of(names: Sequence[str], stdin: BinaryIO) -> tuple[list[Log], list[str]]:
    """The logs that the arguments name, and notes about what is left out.

    Raises:
        UsageError: a name is not a file or folder, or a folder has no log.
    """
    logs: list[Log] = []
    notes: list[str] = []
    for name in names:
        if name == STDIN:
            logs.append(Log("standard input", lambda: _decoded(_blocks(stdin))))
            continue
        path = expanded(name)
        if is_folder(path):
            found = _of_folder(path)
            if len(found) > _FILES:
                notes.append(f"{path}: only the {_FILES} newest of {counted(len(found), 'log')} were read")
                newest = sorted(found, key=lambda file: -file.stat().st_mtime)[:_FILES]
                found = sorted(newest)
            if not found:
                hint = f"Name the files, or rename them to end in {', '.join(_SUFFIXES[:3])}"
                raise UsageError(f"{path}: the folder has no logs", hint=hint)
            logs += [_of_file(file, str(file)) for file in found]
        else:
            refuse_special(path)
            if not exists(path):
                is_message = " " in name
                raise UsageError(
                    f"{shorten(name, _LONGEST_NAME)}: no such file or folder{about_missing_file(path)}",
                    hint="To explain a message: kdoctor explain TEXT" if is_message else None,
                )
            logs.append(_of_file(path, name))
    return logs, notes


def _of_folder(folder: Path) -> list[Path]:
    return sorted(path for path in itertools.islice(_files(folder), _ENTRIES) if _is_log(path) and path.is_file())


def _files(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_foreign(root, name)]
        yield from (Path(root, name) for name in sorted(names))


def _is_log(path: Path) -> bool:
    name = path.name.removesuffix(".gz").lower()
    # Rotated logs end in a number: train.log.1
    stem = name.rstrip("0123456789").rstrip(".")
    return name.endswith(_SUFFIXES) or stem.endswith(_SUFFIXES) or stem in _NAMES


def _of_file(path: Path, name: str) -> Log:
    if path.suffix != ".ipynb":
        return Log(name, lambda: _decoded(_file(path)))
    read = cache(partial(_notebook, path))
    return Log(name, lambda: _decoded(iter([read()[0]])), lambda: read()[1], lambda: read()[2])


def _file(path: Path) -> Iterator[bytes]:
    with _as_usage_errors(path), path.open("rb") as file:
        # A pipe cannot be rewound, so gzip is recognised by its first bytes only where they can be read again.
        packed = file.seekable() and file.read(2) == _GZIP
        if file.seekable():
            file.seek(0)
        if packed:
            most = max(_UNPACKED_BYTES, _UNPACKED_SHARE * os.fstat(file.fileno()).st_size)
            with gzip.open(file) as unpacked:
                yield from _bounded(_blocks(unpacked), most)
        else:
            yield from _blocks(file)


@contextmanager
def _as_usage_errors(path: Path) -> Iterator[None]:
    """Report what a file cannot be read for."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{path}: the gzip file is damaged or incomplete") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


def _blocks(file: Any) -> Iterator[bytes]:
    read = getattr(file, "read1", file.read)
    while block := read(BLOCK):
        yield block


def _bounded(blocks: Iterator[bytes], most: int) -> Iterator[bytes]:
    size = 0
    for block in blocks:
        yield block
        size += len(block)
        if size > most:
            raise PartlyReadError("a .gz file that unpacks to more is read in full only if it is unpacked before")


def _decoded(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks as UTF-8 without zero bytes. PowerShell writes UTF-16.

    A log that was truncated while its program wrote on begins with zero bytes, as many as it had bytes before.
    """
    first = next(blocks, b"")
    encoding = next((name for mark, name in _UTF16.items() if first.startswith(mark)), None) or _unmarked(first)
    if encoding:
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        for block in itertools.chain([first], blocks):
            yield decoder.decode(block).removeprefix("\ufeff").encode()
        return
    is_judged = False
    for block in itertools.chain([first.removeprefix(codecs.BOM_UTF8)], blocks):
        text = block.replace(b"\0", b"") if b"\0" in block else block
        sample = b"" if is_judged else text[:_SAMPLE]
        if len(sample) - len(sample.translate(None, _CONTROLS)) > len(sample) / 20:  # more than a text has
            raise UsageError("the file is binary, not a log")
        is_judged = is_judged or bool(text)
        yield text


def _unmarked(block: bytes) -> str | None:
    """The encoding of UTF-16 without its mark, by the zeros in every second byte."""
    low, high = block[:_SAMPLE:2], block[1:_SAMPLE:2]
    sides = (("utf-16-le", high, low), ("utf-16-be", low, high))
    return next((name for name, zeros, text in sides if zeros.count(0) > len(zeros) / 2 > 5 * text.count(0)), None)


_PROGRAM = re.compile(r"(?m)^\s*(?:!.*\b(?:python[\d.]*|\w*run|bash|sh)\b|%%(?:bash|sh|script))")
"""How a cell starts a program, whose end it does not show."""


def _notebook(path: Path) -> tuple[bytes, bool, int]:
    """What its cells printed, whether all that did have ended (a cell gets its number then), and the lines to pass.

    Of the cells that failed the last one counts, and ends the log: what was run before has passed, and nothing that was
    run after it shows that it did not fail.
    """
    with _as_usage_errors(path):
        content = read_bounded(path, _NOTEBOOK_BYTES)
    try:
        cells = json.loads(content)["cells"]
        ran = [cell for cell in cells if cell.get("outputs")]
        failed = [place for place, cell in enumerate(ran) if any(map(_is_error, cell["outputs"]))][-1:]
        ran = ran[: failed[0] + 1] if failed else ran
        before = [out for cell in ran[:-1] for out in cell["outputs"] if not _is_error(out)]
        parts = ["".join(map(_text, outputs)) for outputs in (before, *(cell["outputs"] for cell in ran[-1:]))]
        text = "".join(parts).encode("utf-8", "replace")
        ended = all(
            cell.get("execution_count") and not _PROGRAM.search("".join(cell.get("source", ""))) for cell in ran
        )
        return text, bool(ran) and ended and not failed, parts[0].count("\n") if failed else 0
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{path}: not a notebook: {type(error).__name__}: {error}") from error


def _is_error(output: dict[str, Any]) -> bool:
    return output.get("output_type") == "error"


def _text(output: dict[str, Any]) -> str:
    """The text of an output: a stream, the traceback of an error, or a displayed text."""
    parts = output.get("text") or output.get("traceback") or (output.get("data") or {}).get("text/plain") or ()
    joint = "\n" if "traceback" in output else ""
    text = parts if isinstance(parts, str) else joint.join(str(part) for part in parts)
    return text if text.endswith("\n") else f"{text}\n"
