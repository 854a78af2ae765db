"""Precision and recall of the linter on its labelled set: ``make bench-lint``.

The set belongs to the project: ``tests/kdoctor_lint/cases/<rule>.txt`` and the examples of the rules. Each case is a
small file. ``### found`` cases have the finding on each line that ends with ``# <-``. ``### silent`` cases look wrong
and are right. Exit status 1 if precision or recall of a rule is below 1.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kdoctor.model import Severity
from kdoctor_lint.engine import lint_script
from kdoctor_lint.model import Rule
from kdoctor_lint.registry import RULES
from kdoctor_lint.script import parse_script

CASES = Path(__file__).parents[1] / "tests" / "kdoctor_lint" / "cases"
JUDGED = [rule for rule in RULES.values() if rule.judge is not None]
_HEAD = "import keras\nimport tensorflow as tf\n\n"
_TITLE = re.compile(r"^### (found|silent): (.+)$", re.MULTILINE)
_IMPORTS = ("import tensorflow", "from tensorflow", "from keras")


class Case(NamedTuple):
    """A small file with its label."""

    rule: Rule
    title: str
    code: str
    found: bool
    """Whether the rule has findings in it."""

    @property
    def lines(self) -> list[int]:
        """The lines with a finding of the rule."""
        return [number for number, line in enumerate(self.code.split("\n"), 1) if line.endswith("# <-")]


class Score(NamedTuple):
    """What the linter found of what is labelled."""

    files: int
    """Labelled files, in which the rule finds something or nothing."""
    right: int
    """Findings on labelled lines."""
    wrong: int
    """Findings on other lines, and errors and warnings of other rules in files without a mistake."""
    missed: int
    """Labelled lines without a finding."""

    @property
    def precision(self) -> float:
        """The share of findings that are right."""
        return self.right / (self.right + self.wrong)

    @property
    def recall(self) -> float:
        """The share of mistakes that are found."""
        return self.right / (self.right + self.missed)


def cases() -> Iterator[Case]:
    """Every case of the files."""
    for rule in JUDGED:
        parts = _TITLE.split((CASES / f"{rule.id.partition('.')[2]}.txt").read_text(encoding="utf-8"))
        for word, title, code in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            head = "" if any(text in code for text in _IMPORTS) else _HEAD
            yield Case(rule, title, head + code, word == "found")


def scores() -> Mapping[str, Score]:
    """The score of each rule, by its code and name."""
    found: dict[str, Score] = {}
    for rule in JUDGED:
        labelled = [_score(case) for case in cases() if case.rule is rule]
        labelled += [_example(rule, rule.bad, wanted=1), _example(rule, rule.good, wanted=0)]
        found[f"{rule.code} {rule.id}"] = Score(*map(sum, zip(*labelled, strict=True)))
    return found


def _score(case: Case) -> Score:
    findings, _ = lint_script(parse_script("train.py", case.code.encode()), RULES)
    own = [item.spot.line for item in findings if item.rule is case.rule]
    right = len(set(own) & set(case.lines))
    others = [item for item in findings if item.rule is not case.rule and item.rule.severity is not Severity.INFO]
    wrong = len(own) - right + (0 if case.found else len(others))
    return Score(1, right, wrong, len(case.lines) - right)


def _example(rule: Rule, code: str, wanted: int) -> Score:
    findings, _ = lint_script(parse_script("train.py", code.encode()), RULES)
    right = min(wanted, sum(item.rule is rule for item in findings))
    return Score(1, right, len(findings) - right, wanted - right)


def main() -> int:
    """Print the scores."""
    found = scores()
    print(f"{'rule':38} {'files':>5} {'found':>5} {'wrong':>5} {'missed':>6} {'precision':>9} {'recall':>6}")
    total = Score(*map(sum, zip(*found.values(), strict=True)))
    for name, score in [*found.items(), ("all", total)]:
        counts = f"{score.files:5} {score.right:5} {score.wrong:5} {score.missed:6}"
        print(f"{name:38} {counts} {score.precision:9.3f} {score.recall:6.3f}")
    return 0 if total.wrong == total.missed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
