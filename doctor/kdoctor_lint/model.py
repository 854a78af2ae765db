"""What the linter says: rules, where a finding is, findings and the report."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A place in a script that a rule objects to."""

    node: ast.AST
    message: str
    """What stands there, in one sentence."""


Judge = Callable[[Trace], Iterable[Hit]]
"""A pure function from what a script does to what is wrong with it."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One pitfall. Its documentation page is made of nothing else."""

    id: str
    """``lint.<slug>``; stable for ever, since it stands in people's comments."""
    severity: Severity
    title: str
    """The healthy condition, in one sentence."""
    why: str
    """What happens otherwise."""
    bad: str
    """Code that the rule objects to."""
    good: str
    """The corrected form of the same code."""
    sources: tuple[str, ...]
    """Public pages that the criterion is from, or how it was measured."""
    judge: Judge | None = None
    """None for what the linter itself notices: files that it cannot read, and ignore comments."""

    @property
    def ignorable(self) -> bool:
        """Whether a comment may silence it."""
        return self.judge is not None


@dataclass(frozen=True, kw_only=True)
class Spot:
    """Where a finding is. Lines and columns count from 1."""

    path: str
    """As it was given, or below the folder that was given; ``-`` is the standard input."""
    line: int
    column: int
    end_line: int
    end_column: int
    """The column after the last character."""
    cell: int | None = None
    """The notebook's code cell, counted from 1; the line then counts within the cell."""

    def __str__(self) -> str:
        cell = f":cell {self.cell}" if self.cell else ""
        return f"{self.path}{cell}:{self.line}:{self.column}"


@dataclass(frozen=True, kw_only=True)
class LintFinding:
    """One place that a rule objects to."""

    rule: Rule
    spot: Spot
    message: str
    source: str = ""
    """The line of code."""

    @property
    def severity(self) -> Severity:
        """The rule's."""
        return self.rule.severity


@dataclass(frozen=True, kw_only=True)
class Ignored:
    """A finding that a comment silences, with its reason."""

    finding: LintFinding
    reason: str


@dataclass(frozen=True, kw_only=True)
class LintReport:
    """Everything that a renderer needs."""

    files: tuple[str, ...]
    """Every file that was looked at, in order."""
    findings: tuple[LintFinding, ...]
    """By file and line."""
    ignored: tuple[Ignored, ...] = ()
    notes: tuple[str, ...] = ()
    """What else the reader should know, such as a folder that holds no script."""

    def count(self, severity: Severity) -> int:
        """Number of findings of exactly that severity."""
        return sum(finding.severity is severity for finding in self.findings)

    def fails(self, fail_on: Severity) -> bool:
        """Whether there is a finding at or over a severity."""
        return any(finding.severity.rank >= fail_on.rank for finding in self.findings)
