"""Each rule: its bad and good form, further bad forms, and look-alikes that must stay silent.

``cases/<slug>.txt`` holds the latter two. A finding is expected on each line that is marked with ``# <-``. A case
without imports of its own starts with those of Keras and TensorFlow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from kdoctor.model import Severity
from kdoctor_lint.engine import lint_script
from kdoctor_lint.model import LintFinding, Rule
from kdoctor_lint.rules import RULES
from kdoctor_lint.source import read_script

CASES = Path(__file__).parent / "cases"
JUDGED = [rule for rule in RULES.values() if rule.judge is not None]
FEWEST_LOOKALIKES = 5
_HEAD = "import keras\nimport tensorflow as tf\n\n"
_TITLE = re.compile(r"^### (found|silent): (.+)$", re.MULTILINE)


def cases(kind: str) -> list[ParameterSet]:
    return list(_cases(kind))


def _cases(kind: str) -> Iterator[ParameterSet]:
    for rule in JUDGED:
        parts = _TITLE.split((CASES / f"{rule.id.partition('.')[2]}.txt").read_text(encoding="utf-8"))
        for word, title, code in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            if word == kind:
                own = "import tensorflow" in code or "from tensorflow" in code or "from keras" in code
                yield pytest.param(rule, code if own else _HEAD + code, id=f"{rule.id}: {title}")


def findings(tmp_path: Path, code: str) -> list[LintFinding]:
    path = tmp_path / "train.py"
    path.write_text(code, encoding="utf-8")
    return lint_script(read_script(str(path)), RULES)[0]


@pytest.mark.parametrize(("rule", "code"), cases("found"))
def test_it_is_found_where_it_is_and_nothing_else_is(tmp_path: Path, rule: Rule, code: str) -> None:
    marked = [number for number, line in enumerate(code.split("\n"), 1) if line.endswith("# <-")]
    assert marked
    found = [item for item in findings(tmp_path, code) if item.rule.id == rule.id]
    assert [item.spot.line for item in found] == marked
    gravest = max(item.severity.rank for item in findings(tmp_path, code))
    assert gravest == rule.severity.rank


@pytest.mark.parametrize(("rule", "code"), cases("silent"))
def test_what_looks_alike_stays_silent(tmp_path: Path, rule: Rule, code: str) -> None:
    found = findings(tmp_path, code)
    assert rule.id not in [item.rule.id for item in found]
    assert [item.rule.id for item in found if item.severity is not Severity.INFO] == []


@pytest.mark.parametrize("rule", JUDGED, ids=lambda rule: rule.id)
def test_the_bad_form_gives_exactly_this_finding(tmp_path: Path, rule: Rule) -> None:
    assert [item.rule.id for item in findings(tmp_path, rule.bad)] == [rule.id]


@pytest.mark.parametrize("rule", JUDGED, ids=lambda rule: rule.id)
def test_the_corrected_form_gives_none(tmp_path: Path, rule: Rule) -> None:
    assert findings(tmp_path, rule.good) == []


@pytest.mark.parametrize("rule", JUDGED, ids=lambda rule: rule.id)
def test_there_are_enough_look_alikes(rule: Rule) -> None:
    text = (CASES / f"{rule.id.partition('.')[2]}.txt").read_text(encoding="utf-8")
    assert text.count("### silent: ") >= FEWEST_LOOKALIKES
    assert text.count("### found: ") >= 1


def test_every_case_file_belongs_to_a_rule() -> None:
    assert {path.stem for path in CASES.iterdir()} == {rule.id.partition(".")[2] for rule in JUDGED}


@pytest.mark.parametrize("rule", list(RULES.values()), ids=lambda rule: rule.id)
def test_every_rule_is_documented(rule: Rule) -> None:
    assert re.fullmatch(r"lint\.[a-z]+(-[a-z]+)*", rule.id)
    assert rule.title.endswith(".")
    assert rule.why
    assert rule.bad
    assert rule.good
    assert rule.sources
