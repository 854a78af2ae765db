"""Errors of reading a script. They become findings."""

from kdoctor_lint.rules.internal import SYNTAX_ERROR, UNREADABLE_FILE


class UnreadableError(Exception):
    """A file, or a part of it, cannot be read."""

    rule = UNREADABLE_FILE

    def __init__(self, message: str, line: int = 1, column: int = 1, *, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix  # How to fix it, where the rule's fix does not apply
        self.line = line
        self.column = column


class UnparsableError(UnreadableError):
    """Code has a syntax error."""

    rule = SYNTAX_ERROR
