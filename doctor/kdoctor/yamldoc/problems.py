"""What is wrong with a document that a person wrote, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kdoctor.errors import UsageError

_SHOWN = 15
_LONGEST = 300


@dataclass(frozen=True, kw_only=True, order=True)
class Problem:
    """One mistake in a document."""

    line: int | None
    """Counted from 1; None where the file could not be read at all."""
    column: int | None
    """Counted from 1."""
    message: str
    """What is wrong, in one sentence, with the word that was probably meant."""
    source: str = ""
    """The file, where it is not the one that was asked for."""


class DocumentError(UsageError):
    """A document cannot be used. It carries every problem that was found."""

    def __init__(self, source: str, problems: Sequence[Problem], *, hint: str | None = None) -> None:
        self.source = source
        """The file, or the name that was asked for."""
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0)))
        super().__init__(self._text(), hint=hint)

    def _text(self) -> str:
        lines = [_line(self.source, problem) for problem in self.problems[:_SHOWN]]
        if len(self.problems) > _SHOWN:
            lines.append(f"... and {len(self.problems) - _SHOWN} more")
        return "\n".join(lines)


def _line(source: str, problem: Problem) -> str:
    source = problem.source or source
    place = source if problem.line is None else f"{source}:{problem.line}:{problem.column}"
    message = problem.message
    return f"{place}: {message if len(message) <= _LONGEST else message[: _LONGEST - 3] + '...'}"
