"""The parts of a file that have code, the file with other code in them, and the difference."""

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecoder
from pkgutil import resolve_name
from typing import Any

from kdoctor_lint.script import decode, is_notebook

_SCAN_STRING: Callable[[str, int, bool], tuple[str, int]] = resolve_name("json.decoder.scanstring")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class _Literal(str):
    """A string of a JSON document, and where it is there, with its quotes."""

    __slots__ = ("end", "start")
    start: int
    end: int


def source_parts(path: str, data: bytes) -> list[str]:
    """The code of a script, or that of each code cell of a notebook, with its line ends."""
    if is_notebook(path):
        return ["".join(lines) for lines in _cells(_text(data))]
    encoding = decode(data)[1]
    return [data.decode(encoding)]


def with_parts(path: str, data: bytes, parts: Mapping[int, str]) -> bytes:
    """The file with other code in some of its parts. Everything else stays byte for byte."""
    if not is_notebook(path):
        encoding = decode(data)[1]
        return parts[0].encode(encoding) if parts else data
    text = _text(data)
    cells = _cells(text)
    for number in sorted(parts, reverse=True):
        if cells[number]:
            text = _with_cell(text, cells[number], parts[number])
    return text.encode("utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8")


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig")


def _with_cell(text: str, old: Sequence[_Literal], code: str) -> str:
    lines = _LINE.findall(code) if len(old) > 1 else [code]
    escaped = re.search(r"\\u(?!00[01])", text) is not None and text.isascii()
    written = [json.dumps(line, ensure_ascii=escaped) for line in lines]
    if len(lines) != len(old):
        between = text[old[0].end : old[1].start] if len(old) > 1 else ", "
        return text[: old[0].start] + between.join(written) + text[old[-1].end :]
    for before, line, literal in reversed(list(zip(old, lines, written, strict=True))):
        if before != line:
            text = text[: before.start] + literal + text[before.end :]
    return text


def _cells(text: str) -> list[list[_Literal]]:
    """The lines of each code cell, as they are in the document."""
    document = _located(text)
    cells = document.get("cells")
    if cells is None:
        cells = document["worksheets"][0]["cells"]
    code = [cell for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]
    sources = [cell.get("source", cell.get("input", "")) for cell in code]
    listed = [source if isinstance(source, list) else [source] for source in sources]
    return [[line for line in lines if isinstance(line, _Literal)] for lines in listed]


def _located(text: str) -> Any:
    """The JSON document, with strings that know where they are."""

    def parse_string(document: str, start: int, strict: bool = True) -> tuple[_Literal, int]:  # noqa: FBT001, FBT002 - the signature of json
        value, end = _SCAN_STRING(document, start, strict)
        literal = _Literal(value)
        literal.start, literal.end = start - 1, end
        return literal, end

    decoder: Any = JSONDecoder()
    decoder.parse_string = parse_string
    # Only the scanner in Python calls parse_string.
    decoder.scan_once = resolve_name("json.scanner.py_make_scanner")(decoder)
    return decoder.decode(text)


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """A file, before and after its fixes."""

    path: str
    before: bytes
    after: bytes
    count: int
    """The number of fixes."""

    def diff(self) -> str:
        """The changes, as a unified diff. Each cell of a notebook is shown as a file."""
        before, after = source_parts(self.path, self.before), source_parts(self.path, self.after)
        parts = list(zip(before, after, strict=True))
        names = [self.path if len(parts) == 1 else f"{self.path}:cell {number}" for number in range(1, len(parts) + 1)]
        return "".join(
            _line(line)
            for name, (old, new) in zip(names, parts, strict=True)
            for line in difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), name, name)
        )


def _line(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
