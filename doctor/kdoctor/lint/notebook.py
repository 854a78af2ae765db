"""Notebooks: the code of their cells, without what is for IPython."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kdoctor.lint.rules import own
from kdoctor.lint.source import UnreadableError

_CODE_MAGICS = frozenset({"capture", "prun", "time", "timeit"})
"""Cell magics whose cell is Python all the same."""
_ASSIGNED = re.compile(r"(\s*[\w.,\s\[\]]+=\s*)[%!].*")
_AUTOMATIC = re.compile(r"(cat|cd|conda|cp|less|ll|ls|man|mkdir|more|mv|pip|pwd|rm|rmdir)(\s+[\w./~$*-][^=]*)?$")
"""Magics that IPython takes without their percent sign."""
_HELP = re.compile(r"\s*[\w.]+\?{1,2}\s*$|\s*\?{1,2}[\w.]+\s*$")


def code_cells(data: bytes) -> Iterator[str]:
    """The text of every code cell.

    Raises:
        UnreadableError: it is no notebook, or none of Python.
    """
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UnreadableError(own.UNREADABLE_FILE, "the notebook is not UTF-8") from error
    except json.JSONDecodeError as error:
        message = f"the notebook is no JSON: {error.msg}"
        raise UnreadableError(own.UNREADABLE_FILE, message, error.lineno, error.colno) from error
    except RecursionError as error:
        raise UnreadableError(own.UNREADABLE_FILE, "the notebook's JSON is nested too deeply") from error
    cells = _cells(document)
    language = _language(document)
    if language not in {"", "python", "ipython"}:
        raise UnreadableError(own.UNREADABLE_FILE, f"the notebook's language is {language}, not Python")
    for cell in cells:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            yield _text(cell.get("source", cell.get("input", "")))


def without_magics(text: str) -> str:
    """The cell's code with magics and shell commands replaced, so that every line keeps its number."""
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        magic = lines[first][2:].split()
        if not magic or magic[0] not in _CODE_MAGICS:
            return "\n" * (len(lines) - 1)
        lines[first] = ""
    return "\n".join(_plain_lines(_dedented(lines)))


def _dedented(lines: list[str]) -> list[str]:
    """A cell may be indented as a whole: IPython takes off what its first line has."""
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return [line.removeprefix(indent) for line in lines] if indent else lines


def _plain_lines(lines: list[str]) -> Iterator[str]:
    continued = False
    for line in lines:
        stripped = line.lstrip()
        indent = line[: len(line) - len(stripped)]
        assigned = _ASSIGNED.match(line)
        if continued:
            continued = stripped.endswith("\\")
            yield ""
        elif stripped.startswith(("%", "!")) or _HELP.match(line) or _AUTOMATIC.match(line):
            continued = stripped.endswith("\\")
            yield f"{indent}pass"
        elif assigned:
            continued = stripped.endswith("\\")
            yield f"{assigned[1]}None"
        else:
            yield line


def _cells(document: Any) -> list[Any]:
    cells = document.get("cells") if isinstance(document, dict) else None
    if cells is None and isinstance(document, dict):
        sheets = document.get("worksheets")
        sheet = sheets[0] if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else {}
        cells = sheet.get("cells")
    if not isinstance(cells, list):
        raise UnreadableError(own.UNREADABLE_FILE, "it is no notebook: it has no list of cells")
    return cells


def _language(document: Any) -> str:
    metadata = document.get("metadata")
    for key, inner in (("language_info", "name"), ("kernelspec", "language")):
        part = metadata.get(key) if isinstance(metadata, dict) else None
        name = part.get(inner) if isinstance(part, dict) else None
        if isinstance(name, str):
            return name.lower()
    return ""


def _text(source: Any) -> str:
    text = "".join(part for part in source if isinstance(part, str)) if isinstance(source, list) else source
    return text.replace("\r\n", "\n").replace("\0", "") if isinstance(text, str) else ""
