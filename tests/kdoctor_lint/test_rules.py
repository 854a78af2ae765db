"""Each rule: its examples, further violations, and similar code without a violation.

``cases/<slug>.txt`` has the latter two. A finding is expected on each line that ends with ``# <-``. Cases without
imports get those of Keras and TensorFlow.
"""

import re
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from benchmarks.lint_generated import run
from benchmarks.lint_labelled import CASES, JUDGED, cases, scores

from kdoctor.model import Severity
from kdoctor_lint.engine import lint_script
from kdoctor_lint.model import Finding, Rule
from kdoctor_lint.registry import RULES
from kdoctor_lint.script import read_script

FEWEST_SILENT = 5
FEWEST_FILES, FEWEST_HARMLESS = 150, 40


def slug(rule: Rule) -> str:
    return rule.id.partition(".")[2]


def labelled(*, found: bool) -> list[ParameterSet]:
    chosen = (case for case in cases() if case.found is found)
    return [pytest.param(case.rule, case.code, id=f"{case.rule.id}: {case.title}") for case in chosen]


def findings(tmp_path: Path, code: str) -> list[Finding]:
    path = tmp_path / "train.py"
    path.write_text(code, encoding="utf-8")
    return lint_script(read_script(str(path)), RULES)[0]


@pytest.mark.parametrize(("rule", "code"), labelled(found=True))
def test_violation_is_found_on_marked_lines_only(tmp_path: Path, rule: Rule, code: str) -> None:
    marked = [number for number, line in enumerate(code.split("\n"), 1) if line.endswith("# <-")]
    assert marked
    found = [item for item in findings(tmp_path, code) if item.rule.id == rule.id]
    assert [item.spot.line for item in found] == marked
    assert max(item.rule.severity.rank for item in findings(tmp_path, code)) == rule.severity.rank


@pytest.mark.parametrize(("rule", "code"), labelled(found=False))
def test_similar_code_is_not_reported(tmp_path: Path, rule: Rule, code: str) -> None:
    found = findings(tmp_path, code)
    assert rule.id not in [item.rule.id for item in found]
    assert [item.rule.id for item in found if item.rule.severity is not Severity.INFO] == []


@pytest.mark.parametrize("rule", JUDGED, ids=lambda rule: rule.id)
def test_bad_example_has_exactly_this_finding(tmp_path: Path, rule: Rule) -> None:
    assert [item.rule.id for item in findings(tmp_path, rule.bad)] == [rule.id]


@pytest.mark.parametrize("rule", JUDGED, ids=lambda rule: rule.id)
def test_good_example_has_no_findings(tmp_path: Path, rule: Rule) -> None:
    assert findings(tmp_path, rule.good) == []


def test_precision_and_recall_are_1_on_the_labelled_set() -> None:
    found = scores()
    assert {name: score for name, score in found.items() if score.precision < 1 or score.recall < 1} == {}
    assert sum(score.files for score in found.values()) >= FEWEST_FILES
    assert sum(not case.found for case in cases()) >= FEWEST_HARMLESS


def test_generated_files_do_not_crash() -> None:
    """``make bench-lint`` generates 10,000."""
    parsed, found = run(300, seed=1)
    assert parsed > 100
    assert found > 200


@pytest.mark.parametrize("rule", JUDGED, ids=lambda rule: rule.id)
def test_rule_has_enough_cases(rule: Rule) -> None:
    text = (CASES / f"{slug(rule)}.txt").read_text(encoding="utf-8")
    assert text.count("### silent: ") >= FEWEST_SILENT
    assert text.count("### found: ") >= 1


def test_every_case_file_belongs_to_a_rule() -> None:
    assert {path.stem for path in CASES.iterdir()} == {slug(rule) for rule in JUDGED}


@pytest.mark.parametrize("rule", list(RULES.values()), ids=lambda rule: rule.id)
def test_every_rule_is_documented(rule: Rule) -> None:
    assert re.fullmatch(r"lint\.[a-z]+(-[a-z]+)*", rule.id)
    assert re.fullmatch(r"KD\d{3}", rule.code)
    assert rule.title.startswith("Checks for ")
    assert rule.title.endswith(".")
    assert rule.fix.endswith(".")
    assert rule.why
    assert rule.bad
    assert rule.good
    assert rule.sources


@pytest.mark.parametrize("rule", JUDGED, ids=lambda rule: rule.id)
def test_messages_are_not_sentences(tmp_path: Path, rule: Rule) -> None:
    """Messages follow the location, as in compilers: lower case, without a full stop."""
    (found,) = findings(tmp_path, rule.bad)
    assert not found.message.endswith(".")
    assert not re.match(r"[A-Z][a-z]", found.message)
