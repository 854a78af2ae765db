"""The result of fixing a file."""

import difflib
from dataclasses import dataclass

from kdoctor_lint.fixes.sources import source_parts


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """A file, before and after its fixes."""

    path: str
    before: bytes
    after: bytes
    count: int
    """The number of fixes."""

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
