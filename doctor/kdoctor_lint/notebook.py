"""The code of notebooks, without IPython's magics and shell commands."""

import ast
import json
import re
import warnings
from collections.abc import Iterator
from typing import Any

from kdoctor_lint.unreadable import UnreadableError

_SAVE_AGAIN = "Save the notebook again in Jupyter, or restore it from version control."
_CODE_MAGICS = frozenset({"autopx", "capture", "prun", "px", "time", "timeit"})  # Cell magics whose cell is Python
_ASSIGNED = re.compile(r"(\s*[\w.,\s\[\]]+=\s*)[%!].*")
_AUTOMATIC = re.compile(r"(cat|cd|conda|cp|less|ll|ls|man|mkdir|more|mv|pip|pwd|rm|rmdir)(\s+[\w./~$*-][^=]*)?$")
"""Magics that IPython accepts without a percent sign."""
_WRITES = re.compile(r"\s*%%(?:writefile|file)[ \t]+(?:-a[ \t]+)?[\"']?([^\n\"']+\.py)[\"']?[ \t]*(?=\n|$)")
_HELP = re.compile(r"\s*[\w.]+\?{1,2}\s*$|\s*\?{1,2}[\w.]+\s*$")


def code_cells(data: bytes) -> Iterator[str]:
    """The text of every code cell.

    Raises:
        UnreadableError: it is not a Python notebook.
    """
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UnreadableError("notebook is not valid UTF-8", fix=_SAVE_AGAIN) from error
    except json.JSONDecodeError as error:
        message = f"notebook is not valid JSON: {error.msg}"
        raise UnreadableError(message, error.lineno, error.colno, fix=_SAVE_AGAIN) from error
    except ValueError as error:
        raise UnreadableError("notebook has a number of thousands of digits", fix=_SAVE_AGAIN) from error
    except RecursionError as error:
        raise UnreadableError("notebook is nested too deeply", fix=_SAVE_AGAIN) from error
    found = _at(document, "cells")
    cells = _at(document, "worksheets", 0, "cells") if found is None else found  # the former is format 3
    if not isinstance(cells, list):
        raise UnreadableError("not a notebook: it has no list of cells", fix=_SAVE_AGAIN)
    names = (_at(document, "metadata", "language_info", "name"), _at(document, "metadata", "kernelspec", "language"))
    language = next((name.lower() for name in names if isinstance(name, str)), "")
    for cell in cells if not language or "py" in language else ():  # notebooks of R and Julia have nothing to lint
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            yield _text(cell.get("source", cell.get("input", "")))


def without_magics(text: str) -> str:
    """The cell's code with magics and shell commands replaced. Line numbers stay the same.

    Only lines with a syntax error are treated as magics, because ``%`` may also continue an expression.
    """
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        magic = lines[first][2:].split()
        if not magic or magic[0] not in _CODE_MAGICS:
            return "\n" * (len(lines) - 1)
        lines[first] = ""
    lines = _dedented(lines)
    while (number := _error_line(lines)) is not None and _replace(lines, number):
        pass
    return "\n".join(lines)


def written_script(text: str) -> tuple[str, str] | None:
    """The name and the code of a script that a cell writes with ``%%writefile``. Line numbers stay the same."""
    matched = _WRITES.match(text)
    return (matched[1], "\n" * text[: matched.end()].count("\n") + text[matched.end() :]) if matched else None


def _error_line(lines: list[str]) -> int | None:
    """Index of the line with a syntax error, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile("\n".join(lines), "<cell>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        return min(max((error.lineno or 1) - 1, 0), len(lines) - 1)
    except (RecursionError, MemoryError, ValueError):
        return None
    return None


def _replace(lines: list[str], number: int) -> bool:
    """Replace a magic, with its continuation lines. False if the line is not a magic."""
    line = lines[number]
    stripped = line.lstrip()
    assigned = _ASSIGNED.match(line)
    if stripped.startswith(("%", "!")) or _HELP.match(line) or _AUTOMATIC.match(line):
        lines[number] = f"{line[: len(line) - len(stripped)]}pass"
    elif assigned:
        lines[number] = f"{assigned[1]}None"
    else:
        return False
    while line.rstrip().endswith("\\") and number + 1 < len(lines):
        number += 1
        line, lines[number] = lines[number], ""
    return True


def _dedented(lines: list[str]) -> list[str]:
    """Remove the indentation of the first line from all lines, as IPython does."""
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return [line.removeprefix(indent) for line in lines] if indent else lines


def _at(value: Any, *keys: str | int) -> Any:
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _text(source: Any) -> str:
    text = "".join(part for part in source if isinstance(part, str)) if isinstance(source, list) else source
    return text.replace("\r\n", "\n").replace("\0", "") if isinstance(text, str) else ""
