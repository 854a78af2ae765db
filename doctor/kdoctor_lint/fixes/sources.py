"""The parts of a file that have code, the file with other code in them, and the difference."""

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any

from kdoctor.records import record
from kdoctor_lint.script import decode, is_notebook


def source_parts(path: str, data: bytes) -> list[str]:
    """The code of a script, or that of each code cell of a notebook, with its line ends."""
    if is_notebook(path):
        return ["".join(cell.get("source", cell.get("input", ""))) for cell in _cells(json.loads(_text(data)))]
    encoding = decode(data)[1]
    return [data.decode(encoding)]


def with_parts(path: str, data: bytes, parts: Mapping[int, str]) -> bytes:
    """The file with other code in some of its parts. Everything else stays byte for byte, or nothing changes."""
    if not is_notebook(path):
        encoding = decode(data)[1]
        return parts[0].encode(encoding) if parts else data
    text = _text(data)
    document = json.loads(text)
    indented = re.match(r"\{\n( +)", text)
    options: dict[str, Any] = {"indent": len(indented[1]) if indented else None, "ensure_ascii": text.isascii()}
    end = text[len(text.rstrip("\n")) :]
    if (json.dumps(document, **options) + end).encode() != data:
        return data
    for number, cell in enumerate(_cells(document)):
        if number in parts:
            key = "source" if "source" in cell else "input"
            cell[key] = parts[number].splitlines(keepends=True) if isinstance(cell[key], list) else parts[number]
    return (json.dumps(document, **options) + end).encode()


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig")


def _cells(document: Any) -> list[dict[str, Any]]:
    """The code cells."""
    cells = document["cells"] if "cells" in document else document["worksheets"][0]["cells"]
    return [cell for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]


@record
class Fixed:
    """A file, before and after its fixes."""

    path: str
    before: bytes
    after: bytes
    count: int  # The number of fixes

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
