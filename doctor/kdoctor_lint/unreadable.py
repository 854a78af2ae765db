"""The one error of reading: what cannot be looked at, and which rule says so."""

from __future__ import annotations

from kdoctor_lint.model import Rule


class UnreadableError(Exception):
    """A file, or a part of it, cannot be looked at."""

    def __init__(self, rule: Rule, message: str, line: int = 1, column: int = 1, source: str = "") -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.line = line
        self.column = column
        self.source = source
