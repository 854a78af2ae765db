"""The plugin for flake8, ``flake8 --select KD``. It reports errors and warnings."""

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from tokenize import detect_encoding

from kdoctor.errors import UsageError
from kdoctor.version import __version__
from kdoctor_lint.engine import lint_script, once_each, rules_for
from kdoctor_lint.registry import chosen_rules
from kdoctor_lint.script import STDIN, parse_script
from kdoctor_lint.settings import Settings, read_settings


class Plugin:
    """One file, as flake8 gives it to its plugins."""

    name = "kdoctor"
    version = __version__

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:
        del tree  # kdoctor parses the file itself
        self._path = STDIN if filename == "stdin" else filename
        self._data = _encoded("".join(lines))

    @staticmethod
    def parse_options(_: object) -> None:
        """Report a mistake in ``pyproject.toml`` once, before flake8 starts its processes."""
        try:
            _settings(Path.cwd())
        except UsageError as error:
            raise SystemExit(f"kdoctor: {error}") from error

    def run(self) -> Iterator[tuple[int, int, str, type]]:
        """The findings: line, column from 0, code and message, and this class."""
        settings = _settings(Path.cwd())
        rules = rules_for(self._path, chosen_rules(settings.select, settings.ignore, notes=False), settings)
        findings, _ = lint_script(parse_script(self._path, self._data), rules, settings)
        for finding in once_each(findings):
            if finding.rule.judge is not None:
                spot = finding.spot
                yield spot.line, spot.column - 1, f"{finding.rule.code} {finding.message}", type(self)


def _encoded(code: str) -> bytes:
    """The code in the encoding that it declares, because flake8 has decoded it."""
    data = code.encode(errors="surrogatepass")
    try:
        return code.encode(detect_encoding(BytesIO(data).readline)[0])
    except (LookupError, SyntaxError, UnicodeError):
        return data


@lru_cache(maxsize=1)
def _settings(folder: Path) -> Settings:
    return read_settings(folder)
