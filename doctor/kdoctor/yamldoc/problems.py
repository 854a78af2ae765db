"""Problems in documents that people write, with their places."""

from collections.abc import Sequence
from dataclasses import dataclass

from kdoctor.errors import UsageError

_SHOWN = 15
_LONGEST = 300


@dataclass(frozen=True, kw_only=True, order=True)
class Problem:
    """One error in a document."""

    line: int | None
    """Counted from 1; None if the file could not be read at all."""
    column: int | None
    """Counted from 1."""
    message: str
    """What is wrong, in one sentence, with a suggestion."""
    source: str = ""
    """The file, if it is not the one that was asked for."""


class DocumentError(UsageError):
    """A document cannot be used. Carries every problem that was found."""

    def __init__(self, source: str, problems: Sequence[Problem], *, hint: str | None = None) -> None:
        self.source = source
        """The file, or the name that was asked for."""
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0)))
        lines = [_line(source, problem) for problem in self.problems[:_SHOWN]]
        if len(self.problems) > _SHOWN:
            lines.append(f"... and {len(self.problems) - _SHOWN} more")
        super().__init__("\n".join(lines), hint=hint)


def _line(source: str, problem: Problem) -> str:
    source = problem.source or source
    place = source if problem.line is None else f"{source}:{problem.line}:{problem.column}"
    message = problem.message
    return f"{place}: {message if len(message) <= _LONGEST else message[: _LONGEST - 3] + '...'}"
