from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kdoctor.text.canvas import Canvas
from kdoctor_lint.engine import lint
from kdoctor_lint.model import LintFinding, LintReport, Spot
from kdoctor_lint.report import FORMATS, render
from kdoctor_lint.rules import RULES

CODE = """import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    café = keras.Sequential([keras.layers.Dense(1)])
café.compile(optimizer="adam", loss="mse")
with strategy.scope():
    other = keras.Sequential([keras.layers.Dense(1)])
other.compile("adam", "mse")  # kdoctor: ignore[lint.compile-outside-scope] it is never trained
"""


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LintReport:
    monkeypatch.chdir(tmp_path)
    Path("my job.py").write_text(CODE, encoding="utf-8")
    return lint(["my job.py"])


def finding(path: str = "a.py", message: str = "m", cell: int | None = None) -> LintReport:
    spot = Spot(path=path, line=3, column=2, end_line=3, end_column=9, cell=cell)
    rule = RULES["lint.jit-compile"]
    return LintReport(files=(path,), findings=(LintFinding(rule=rule, spot=spot, message=message),))


def test_terminal(report: LintReport) -> None:
    text = render(report, "terminal")
    assert text.startswith(
        "my job.py:7:1: error: lint.compile-outside-scope\n"
        "  the model is made inside the strategy's scope, but it is compiled outside\n"
        '    café.compile(optimizer="adam", loss="mse")\n'
    )
    assert "  Why: compile makes the optimizer's" in text
    assert "  Write:\n      import keras\n" in text
    assert text.endswith("1 finding (1 error, 0 warnings, 0 infos) in 1 file; 1 ignored\n")


def test_terminal_says_what_was_looked_at_when_all_is_well() -> None:
    assert render(LintReport(files=("a.py", "b.py"), findings=()), "terminal") == "no finding in 2 files\n"


def test_terminal_on_a_stream_without_unicode(report: LintReport) -> None:
    assert "caf\\xe9.compile" in render(report, "terminal", Canvas(unicode=False))


def test_terminal_colours_only_where_asked(report: LintReport) -> None:
    assert "\x1b[" not in render(report, "terminal")
    assert "\x1b[1;31merror\x1b[0m" in render(report, "terminal", Canvas(colour=True))


def test_terminal_wraps_words_and_not_code(report: LintReport) -> None:
    rule = RULES["lint.compile-outside-scope"]
    *body, _ = render(report, "terminal", Canvas(width=60)).splitlines()
    for line in body:
        assert len(line) <= 60 or line.strip() in rule.good or "café" in line


def test_control_characters_do_not_reach_the_terminal() -> None:
    text = render(finding(path="a\x1b[2J.py", message="see \x1b]0;x\x07"), "terminal")
    assert "\x1b" not in text
    assert "\x07" not in text


def test_json(report: LintReport) -> None:
    document = json.loads(render(report, "json"))
    assert document["schema"] == "kdoctor/lint/v1"
    assert document["files"] == ["my job.py"]
    (found,) = document["findings"]
    assert found == {
        "rule": "lint.compile-outside-scope",
        "severity": "error",
        "path": "my job.py",
        "cell": None,
        "line": 7,
        "column": 1,
        "end_line": 7,
        "end_column": 43,
        "message": "the model is made inside the strategy's scope, but it is compiled outside",
        "source": 'café.compile(optimizer="adam", loss="mse")',
    }
    assert document["rules"][found["rule"]]["corrected"] == RULES[found["rule"]].good
    assert document["ignored"][0]["reason"] == "it is never trained"


def sarif_run(report: LintReport) -> dict[str, Any]:
    log = json.loads(render(report, "sarif"))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def test_sarif_has_what_the_standard_requires(report: LintReport) -> None:
    """Sections 3.14 (run), 3.19 (driver), 3.27 (result), 3.30 (region), 3.49 (rule) of SARIF 2.1.0."""
    run = sarif_run(report)
    driver = run["tool"]["driver"]
    assert driver["name"] == "kdoctor lint"
    rules = driver["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in {"error", "warning", "note"}
        assert rule.get("helpUri", "https://").startswith("https://")
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"error", "warning", "note"}
        assert result["message"]["text"]
        region = result["locations"][0]["physicalLocation"]["region"]
        assert 1 <= region["startLine"] <= region["endLine"]
        assert 1 <= region["startColumn"] <= region["endColumn"]


def test_sarif_tells_the_ignored_as_suppressed(report: LintReport) -> None:
    first, second = sarif_run(report)["results"]
    assert "suppressions" not in first
    assert second["suppressions"] == [{"kind": "inSource", "justification": "it is never trained"}]


def test_sarif_addresses(report: LintReport) -> None:
    def uri(given: LintReport) -> str:
        return str(sarif_run(given)["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])

    assert uri(report) == "my%20job.py"
    assert uri(finding("/srv/job.py")) == "file:///srv/job.py"
    assert uri(finding("-")) == "stdin"


def test_sarif_gives_no_line_in_a_notebook_file() -> None:
    (result,) = sarif_run(finding("a.ipynb", cell=4))["results"]
    location = result["locations"][0]
    assert "region" not in location["physicalLocation"]
    assert location["logicalLocations"] == [{"name": "cell 4", "kind": "module"}]
    assert result["message"]["text"] == "cell 4, line 3: m"


def test_github(report: LintReport) -> None:
    first, last, rest = render(report, "github").split("\n")
    assert first == (
        "::error title=lint.compile-outside-scope,file=my job.py,line=7,endLine=7,col=1,endColumn=43::"
        "the model is made inside the strategy's scope, but it is compiled outside. "
        "A model is compiled inside the scope that it was made in."
    )
    assert (last, rest) == ("1 finding (1 error, 0 warnings, 0 infos) in 1 file; 1 ignored", "")


def test_github_escapes_what_would_end_a_command() -> None:
    line = render(finding("a,b:c%.py", "100 %\nsure"), "github").split("\n")[0]
    assert "file=a%2Cb%3Ac%25.py," in line
    assert "::100 %25%0Asure. " in line


def test_github_names_the_cell_of_a_notebook() -> None:
    line = render(finding("a.ipynb", cell=4), "github").split("\n")[0]
    assert line.startswith("::error title=lint.jit-compile,file=a.ipynb::cell 4, line 3: m. ")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_ends_its_last_line(report: LintReport, name: str) -> None:
    assert render(report, name).endswith("\n")
    assert not render(report, name).endswith("\n\n")
