"""From a file to parsed code, for scripts and notebooks. What cannot be read or parsed becomes a finding."""

import ast
import bisect
import io
import re
import shlex
import sys
import tokenize
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from kdoctor_lint.model import Finding, Spot
from kdoctor_lint.notebook import code_cells, without_magics, written_script
from kdoctor_lint.unreadable import UnparsableError, UnreadableError

STDIN = "-"
_MAX_BYTES = 20_000_000
_MAX_CODE = 5_000_000  # Parsing takes up to 500 bytes of memory for each byte of code
_LEAVE_OUT = "Name only Python scripts, notebooks and folders of them."
_MAGIC = re.compile(r"^[ \t]*(?:[%!]\s*[a-zA-Z]|[\w.]+[ \t]*=[ \t]*[%!]\s*[a-zA-Z])", re.MULTILINE)
"""A line of IPython, as in scripts that are exported from notebooks."""
_PYTHON_2 = re.compile(r"print\s+[^(=\s]")


@dataclass(kw_only=True)
class Script:
    """Parsed code. The lines of all cells of a notebook are numbered together."""

    path: str
    body: list[ast.stmt] = field(default_factory=list)
    written: dict[str, list[ast.stmt]] = field(default_factory=dict)
    """The scripts that cells of a notebook write, by their names."""
    texts: list[tuple[int, str]] = field(default_factory=list)
    """The code that was parsed: the number of lines before each part, and its text."""
    lines: list[str] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)  # The number of lines before each code cell; empty for a script
    problems: list[Finding] = field(default_factory=list)

    @property
    def code(self) -> str:
        """All code that was parsed."""
        return "\n".join(text for _, text in self.texts)

    def spot(self, node: ast.AST) -> Spot:
        """Where a node is. A method call that spans lines is where the method's name is."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name_line, name_end = node.func.end_lineno or line, node.func.end_col_offset or 0
            if name_line != line:
                line, column = name_line, name_end - len(node.func.attr.encode())
        end_line, end = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column)
        return self.spot_at(line, self._column(line, column), end_line, self._column(end_line, end))

    def positions(self, node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
        """The start and the end of a node in the whole script. Columns count characters from 0."""
        line, end_line = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
        return (line, self._column(line, start) - 1), (end_line, self._column(end_line, end) - 1)

    def spot_at(self, line: int, column: int, end_line: int, end_column: int) -> Spot:
        """Where a line and a column of the whole script are."""
        cell = bisect.bisect_left(self.cells, line)
        before = self.cells[cell - 1] if cell else 0
        return Spot(
            path=self.path,
            line=line - before,
            column=column,
            end_line=end_line - before,
            end_column=end_column,
            cell=cell or None,
        )

    def whole_line(self, spot: Spot) -> int:
        """The line of a spot in the whole script."""
        return spot.line + (self.cells[spot.cell - 1] if spot.cell else 0)

    def line_of(self, spot: Spot) -> str:
        """The text of a spot's line."""
        return self._text(self.whole_line(spot)).strip()

    def _text(self, line: int) -> str:
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""

    def _column(self, line: int, offset: int) -> int:
        """The ast module counts bytes from 0; readers count characters from 1."""
        return len(self._text(line).encode()[:offset].decode(errors="replace")) + 1


def read_script(path: str) -> Script:
    """Read and parse a file as far as possible. Errors are among the script's problems."""
    try:
        data = read_bytes(path)
    except UnreadableError as error:
        script = Script(path=path)
        script.problems.append(_problem(script, error))
        return script
    return parse_script(path, data)


def is_notebook(path: str) -> bool:
    """Whether a file is a notebook, by its name."""
    return path.lower().endswith(".ipynb")


def parse_script(path: str, data: bytes) -> Script:
    """Parse the contents of a file as far as possible. Errors are among the script's problems."""
    script = Script(path=path)
    try:
        if is_notebook(path):
            for text in code_cells(data):
                script.cells.append(len(script.lines))
                _add(script, text)
        else:
            _add(script, decode(data)[0])
    except UnreadableError as error:
        script.problems.append(_problem(script, error))
    return script


def _add(script: Script, text: str) -> None:
    before = len(script.lines)
    script.lines += text.split("\n")
    try:
        written = written_script(text) if script.cells else None
        if written is not None:
            tree, parsed = _parse(written[1]), written[1]
        else:
            tree, parsed = _parse_cell(text) if script.cells or _MAGIC.search(text) else (_parse(text), text)
    except UnreadableError as error:
        script.problems.append(_problem(script, error, before))
        return
    if before:
        ast.increment_lineno(tree, before)
    body = script.body if written is None else script.written.setdefault(written[0], [])
    body += tree.body
    script.texts.append((before, parsed))


def _problem(script: Script, error: UnreadableError, before: int = 0) -> Finding:
    spot = script.spot_at(error.line + before, error.column, error.line + before, error.column)
    source = script.line_of(spot) if isinstance(error, UnparsableError) else ""
    return Finding(rule=error.rule, spot=spot, message=str(error), source=source, own_fix=error.fix)


def read_bytes(path: str) -> bytes:
    """The contents of a file, or of standard input.

    Raises:
        UnreadableError: it cannot be read.
    """
    if path == STDIN:
        return _read_stdin()
    file = Path(path)
    try:
        if file.is_dir():
            list(file.iterdir())  # it is among the files because it could not be listed
        if file.exists() and not file.is_file():
            raise UnreadableError("not a regular file", fix=_LEAVE_OUT)
        if file.stat().st_size > _MAX_BYTES:
            raise UnreadableError(f"file is larger than {_MAX_BYTES // 1_000_000} MB", fix=_LEAVE_OUT)
        return file.read_bytes()
    except FileNotFoundError as error:
        broken = f"broken link to {file.readlink()}" if file.is_symlink() else "no such file or folder"
        raise UnreadableError(broken, fix="Restore the file, or remove the link.") from error
    except PermissionError as error:
        fix = f"Give yourself access: chmod u+rX {shlex.quote(path)}"
        raise UnreadableError(f"cannot be read: {error.strerror}", fix=fix) from error
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror or error}", fix=_LEAVE_OUT) from error


def _read_stdin() -> bytes:
    fix = "Redirect a script to stdin: kdoctor lint - < train.py"
    if sys.stdin is None:
        raise UnreadableError("stdin is closed", fix=fix)
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror or error}", fix=fix) from error


def decode(data: bytes) -> tuple[str, str]:
    """The source, with line feeds only, and its encoding.

    The encoding is UTF-8, or what a byte order mark or the comment of PEP 263 declares.

    Raises:
        UnreadableError: it is not text in this encoding.
    """
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise UnreadableError("not Python source: contains null bytes", line, fix=_LEAVE_OUT)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except SyntaxError as error:
        raise UnreadableError(f"cannot decode file: {error.msg}") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"byte 0x{data[error.start]:02x} is not valid {error.encoding}, and no other encoding is declared"
        raise UnreadableError(message, line) from error
    except (LookupError, UnicodeError) as error:  # Python's codecs include some that are not of texts, such as zip
        raise UnreadableError(f"cannot decode file: {str(error).partition(';')[0]}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding


def _parse_cell(text: str) -> tuple[ast.Module, str]:
    """The tree of a cell, and the text that was parsed: with magics only if that is valid Python."""
    try:
        return _parse(text, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), text
    except UnreadableError:
        plain = without_magics(text)
        return _parse(plain, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), plain


def _parse(text: str, flags: int = 0) -> ast.Module:
    if len(text) > _MAX_CODE:
        raise UnreadableError(f"file has more than {_MAX_CODE // 1_000_000} MB of code", fix=_LEAVE_OUT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the script, such as invalid escape sequences
            tree: ast.Module = compile(text, "<script>", "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
            return tree
    except SyntaxError as error:
        line = error.lineno or 1
        source = "".join(text.split("\n")[line - 1 : line]).strip()
        hint = " (the code looks like Python 2)" if _PYTHON_2.match(source) else ""
        message = f"cannot be parsed with Python {sys.version_info.major}.{sys.version_info.minor}: {error.msg}{hint}"
        raise UnparsableError(message, line, max(error.offset or 1, 1)) from error
    except (RecursionError, MemoryError) as error:
        raise UnreadableError("code is nested too deeply to be parsed") from error
    except (ValueError, OverflowError) as error:
        raise UnreadableError(f"cannot parse file: {error}") from error
