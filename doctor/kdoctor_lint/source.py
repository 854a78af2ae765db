"""From a file to parsed code: scripts and notebooks, and one clear message where that does not work."""

from __future__ import annotations

import ast
import bisect
import io
import re
import sys
import tokenize
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kdoctor_lint.model import LintFinding, Spot
from kdoctor_lint.notebook import code_cells, without_magics
from kdoctor_lint.rules import internal as own
from kdoctor_lint.unreadable import UnreadableError

STDIN = "-"
_LARGEST = 20_000_000
"""Bytes. A larger file is no script that a person wrote."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A notebook's code cell."""

    number: int
    """Counted from 1 among the code cells."""
    start: int
    """Lines that stand before it when all cells are put one after another."""


@dataclass(kw_only=True)
class Script:
    """Parsed code, in one numbering of lines."""

    path: str
    body: list[ast.stmt] = field(default_factory=list)
    texts: list[tuple[int, str]] = field(default_factory=list)
    """Parts of the code that were parsed, each with the number of lines before it."""
    lines: list[str] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    """Empty for what is no notebook."""
    problems: list[LintFinding] = field(default_factory=list)

    def spot(self, node: ast.AST) -> Spot:
        """Where a node is. Of a call that spans lines, where its method's name stands."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name_line, name_end = node.func.end_lineno or line, node.func.end_col_offset or 0
            if name_line != line:
                line, column = name_line, name_end - len(node.func.attr.encode())
        end_line, end_column = getattr(node, "end_lineno", None) or line, getattr(node, "end_col_offset", None)
        end = column if end_column is None else end_column
        return self.spot_at(line, self._column(line, column), end_line, self._column(end_line, end))

    def spot_at(self, line: int, column: int, end_line: int, end_column: int) -> Spot:
        """A place by line and column, in the numbering of the whole."""
        cell = self._cell(line)
        before = cell.start if cell else 0
        return Spot(
            path=self.path,
            line=line - before,
            column=column,
            end_line=end_line - before,
            end_column=end_column,
            cell=cell.number if cell else None,
        )

    def line_of(self, line: int) -> str:
        """The text of a line, in the numbering of the whole."""
        return self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""

    def whole_line(self, spot: Spot, line: int) -> int:
        """A line of a spot in the numbering of the whole."""
        starts = {cell.number: cell.start for cell in self.cells}
        return line + (starts[spot.cell] if spot.cell else 0)

    def _cell(self, line: int) -> Cell | None:
        if not self.cells:
            return None
        return self.cells[bisect.bisect_left([cell.start for cell in self.cells], line) - 1]

    def _column(self, line: int, offset: int) -> int:
        """Ast counts bytes from 0; people count characters from 1."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return (offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))) + 1


def read_script(path: str) -> Script:
    """A file, parsed as far as it can be; what cannot be is among its problems."""
    script = Script(path=path)
    try:
        data = _bytes(path)
        if path.lower().endswith(".ipynb"):
            for number, text in enumerate(code_cells(data), 1):
                script.cells.append(Cell(number=number, start=len(script.lines)))
                _add(script, text, notebook=True)
        else:
            _add(script, _decoded(data), notebook=False)
    except UnreadableError as error:
        script.problems.append(_problem(script, error, 0))
    return script


def _add(script: Script, text: str, *, notebook: bool) -> None:
    before = len(script.lines)
    script.lines += text.split("\n")
    try:
        tree, parsed = _parsed(text, notebook=notebook)
    except UnreadableError as error:
        script.problems.append(_problem(script, error, before))
        return
    if before:
        ast.increment_lineno(tree, before)
    script.body += tree.body
    script.texts.append((before, parsed))


def _problem(script: Script, error: UnreadableError, before: int) -> LintFinding:
    line, column = error.line + before, error.column
    spot = script.spot_at(line, column, line, column)
    return LintFinding(rule=error.rule, spot=spot, message=error.message, source=error.source)


def _bytes(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read()
    file = Path(path)
    try:
        if file.exists() and not file.is_file():
            raise UnreadableError(own.UNREADABLE_FILE, "it is no regular file")
        data = file.read_bytes() if file.stat().st_size <= _LARGEST else None
    except OSError as error:
        raise UnreadableError(own.UNREADABLE_FILE, _words(file, error)) from error
    if data is None:
        raise UnreadableError(own.UNREADABLE_FILE, f"it is larger than {_LARGEST // 1_000_000} MB")
    return data


def _words(file: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"a link to {file.readlink()}, which does not exist" if file.is_symlink() else "no such file or folder"
    return f"it cannot be read: {error.strerror or error}"


def _decoded(data: bytes) -> str:
    """Text as Python would decode it: UTF-8, or as a byte order mark or PEP 263's comment says."""
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise UnreadableError(own.UNREADABLE_FILE, "it holds null bytes, so it is no Python source", line)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except SyntaxError as error:
        raise UnreadableError(own.UNREADABLE_FILE, f"its encoding cannot be told: {error.msg}") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"byte 0x{data[error.start]:02x} is not {error.encoding}, and the file declares no other encoding"
        raise UnreadableError(own.UNREADABLE_FILE, message, line) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _parsed(text: str, *, notebook: bool) -> tuple[ast.Module, str]:
    """The tree, and the text that it is of: of a notebook, without magics."""
    if not notebook:
        return _tree(text, notebook=False), text
    try:
        return _tree(text, notebook=True), text
    except UnreadableError:
        plain = without_magics(text)
        return _tree(plain, notebook=True), plain


def _tree(text: str, *, notebook: bool) -> ast.Module:
    flags = ast.PyCF_ONLY_AST | (ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if notebook else 0)
    try:
        with warnings.catch_warnings():
            # A script's own doubtful escapes are not this program's warnings.
            warnings.simplefilter("ignore")
            return compile(text, "<script>", "exec", flags, dont_inherit=True)  # type: ignore[no-any-return]
    except SyntaxError as error:
        raise _syntax_error(error, text) from error
    except (RecursionError, MemoryError) as error:
        raise UnreadableError(own.UNREADABLE_FILE, "its code is nested too deeply to be parsed") from error
    except ValueError as error:
        raise UnreadableError(own.UNREADABLE_FILE, f"it cannot be parsed: {error}") from error


_PRINT = re.compile(r"print\s+[^(=\s]")


def _syntax_error(error: SyntaxError, text: str) -> UnreadableError:
    line, column = error.lineno or 1, max(error.offset or 1, 1)
    lines = text.split("\n")
    source = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    hint = "; it looks like Python 2" if _PRINT.match(source) else ""
    message = f"{python} cannot parse it: {error.msg}{hint}"
    return UnreadableError(own.SYNTAX_ERROR, message, line, column, source)


def all_code(texts: Sequence[tuple[int, str]]) -> str:
    """All the code of a script, for a quick look."""
    return texts[0][1] if len(texts) == 1 else "\n".join(text for _, text in texts)
