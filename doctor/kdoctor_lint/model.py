"""Rules, findings and the report of the linter."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Literal

from kdoctor.model import Severity
from kdoctor.records import record
from kdoctor_lint.edits import Fix
from kdoctor_lint.flow.trace import Trace

__all__ = ["MEASURED", "Finding", "Hit", "Hits", "Ignored", "LintReport", "Rule", "Severity", "Spot", "Trace"]

MEASURED = "measured with TensorFlow 2.21.0 and Keras 3.15.1 on two logical CPU devices"  # A source of a rule

NO_CODE = ast.Pass()  # The node of a fix whose code is forgotten
Hit = tuple[ast.AST, str] | tuple[ast.AST, str, Fix | None]
"""A node that violates a rule, what is wrong there (lower case, without a full stop), and how ``--fix`` fixes it."""
Hits = Iterator[Hit]


@record
class Rule:
    """A common mistake and how to fix it. The reference page is generated from these fields."""

    id: str  # ``lint.<slug>``. Ids are stable because ignore comments contain them.
    code: str  # A short id, such as ``KD101``, for ``noqa`` comments. Rules about one subject share the first digit.
    severity: Severity
    judge: Callable[[Trace], Iterable[Hit]] | None = None
    """Finds violations in what a script does. None for problems that the linter detects while it reads a file:
    comments cannot silence these."""
    title: str = ""  # What the rule does, as one sentence: ``Checks for ...``
    fix: str = ""  # What to do, as one imperative sentence
    sources: tuple[str, ...] = ()  # URLs that support the rule, or how it was measured
    why: str = ""  # What goes wrong in code that violates the rule. Line breaks count as spaces.
    bad: str = ""  # Code that violates the rule
    good: str = ""  # The same code, corrected
    """``rules/texts/<slug>.txt`` may have these six instead."""
    once: bool = False  # Whether equal messages in a file are one finding, at the first line
    words: tuple[str, ...] = ("distribute", "Strategy")
    """A file with none of these words cannot violate the rule. Analysis is skipped if no rule needs it."""

    @property
    def reason(self) -> str:
        """``why`` as one line."""
        return " ".join(self.why.split())


@record
class Spot:
    """Where a finding is. Lines and columns count from 1."""

    path: str  # The path as given, or below the given folder; ``-`` for standard input
    line: int
    column: int
    end_line: int
    end_column: int  # The column after the last character
    cell: int | None = None  # The notebook's code cell, counted from 1. Lines then count within the cell.

    def __str__(self) -> str:
        cell = f":cell {self.cell}" if self.cell else ""
        return f"{self.path}{cell}:{self.line}:{self.column}"


@record
class Finding:
    """A violation of a rule."""

    rule: Rule
    spot: Spot
    message: str
    source: str = ""  # The line of code
    own_fix: str = ""  # How to fix this finding, where the rule's fix does not apply
    autofix: Fix | None = None  # How ``--fix`` fixes it, if it can

    @property
    def fixed_by(self) -> Literal["safe", "unsafe"] | None:
        """The kind of fix that ``--fix`` has for it."""
        if self.autofix is None:
            return None
        return "safe" if self.autofix.safe else "unsafe"

    def without_code(self) -> Finding:
        """Without the node of the code, which only fixes need."""
        return self if self.autofix is None else replace(self, autofix=self.autofix._replace(node=NO_CODE))

    @property
    def fix(self) -> str:
        """How to fix it."""
        return self.own_fix or self.rule.fix


@record
class Ignored:
    """A finding silenced by a comment, with the comment's reason."""

    finding: Finding
    reason: str


@record
class LintReport:
    """The result of a lint run."""

    files: tuple[str, ...]  # Every file read, in order
    findings: tuple[Finding, ...]  # By file and line
    ignored: tuple[Ignored, ...] = ()
    notes: tuple[str, ...] = ()  # Remarks about the run, such as a folder without scripts

    @property
    def rules(self) -> dict[str, Rule]:
        """The rules with findings, by id, in the order of their first finding."""
        return {finding.rule.id: finding.rule for finding in self.findings}

    def fails(self, fail_on: Severity) -> bool:
        """Whether a finding is at or above a severity."""
        return any(finding.rule.severity.rank >= fail_on.rank for finding in self.findings)
