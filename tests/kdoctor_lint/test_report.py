import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from kdoctor.text.canvas import PLAIN, Canvas
from kdoctor_lint.engine import lint
from kdoctor_lint.model import Finding, LintReport, Spot
from kdoctor_lint.registry import RULES
from kdoctor_lint.report.formats import FORMATS

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


def render(report: LintReport, name: str, canvas: Canvas = PLAIN) -> str:
    return FORMATS[name](report, canvas)


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LintReport:
    monkeypatch.chdir(tmp_path)
    Path("my job.py").write_text(CODE, encoding="utf-8")
    return lint(["my job.py"])


def finding(path: str = "a.py", message: str = "m", cell: int | None = None) -> LintReport:
    spot = Spot(path=path, line=3, column=2, end_line=3, end_column=9, cell=cell)
    rule = RULES["lint.jit-compile"]
    return LintReport(files=(path,), findings=(Finding(rule=rule, spot=spot, message=message),))


def test_terminal(report: LintReport, screen: SnapshotAssertion) -> None:
    assert render(report, "terminal") == screen


def test_terminal_counts_files_without_findings() -> None:
    text = render(LintReport(files=("a.py", "b.py"), findings=()), "terminal")
    assert text.count("\n") == 1
    assert "2 files" in text


def test_terminal_is_coloured_only_on_colour_canvas(report: LintReport) -> None:
    assert "\x1b[" not in render(report, "terminal")
    assert "\x1b[1;31merror\x1b[0m" in render(report, "terminal", Canvas(colour=True))


def test_terminal_wraps_text_but_not_code(report: LintReport) -> None:
    rule = RULES["lint.compile-outside-scope"]
    *body, _ = render(report, "terminal", Canvas(width=60)).splitlines()
    for line in body:
        assert len(line) <= 60 or line.strip() in rule.good or "café" in line


def test_json_contains_findings(report: LintReport) -> None:
    document = json.loads(render(report, "json"))
    assert document["schema"] == "kdoctor/lint/v1"
    assert document["files"] == ["my job.py"]
    (found,) = document["findings"]
    assert found.pop("message") == report.findings[0].message
    assert found == {
        "rule": "lint.compile-outside-scope",
        "code": "KD102",
        "severity": "error",
        "path": "my job.py",
        "cell": None,
        "line": 7,
        "column": 1,
        "end_line": 7,
        "end_column": 43,
        "source": 'café.compile(optimizer="adam", loss="mse")',
        "fix": None,
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


def test_sarif_has_required_properties(report: LintReport) -> None:
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


def test_sarif_suppresses_ignored_findings(report: LintReport) -> None:
    first, second = sarif_run(report)["results"]
    assert "suppressions" not in first
    assert second["suppressions"] == [{"kind": "inSource", "justification": "it is never trained"}]


def test_sarif_uris(report: LintReport) -> None:
    def uri(given: LintReport) -> str:
        return str(sarif_run(given)["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])

    assert uri(report) == "my%20job.py"
    assert uri(finding("/srv/job.py")) == "file:///srv/job.py"
    assert uri(finding("-")) == "stdin"


def test_sarif_has_no_line_for_notebook() -> None:
    (result,) = sarif_run(finding("a.ipynb", cell=4))["results"]
    location = result["locations"][0]
    assert "region" not in location["physicalLocation"]
    assert location["logicalLocations"] == [{"name": "cell 4", "kind": "module"}]
    assert result["message"]["text"] == "cell 4, line 3: m"


def test_github_has_an_annotation_per_finding(report: LintReport) -> None:
    (found,) = report.findings
    first, last, rest = render(report, "github").split("\n")
    properties = "title=KD102 lint.compile-outside-scope,file=my job.py,line=7,endLine=7,col=1,endColumn=43"
    assert first == f"::error {properties}::{found.message}. {found.rule.fix}"
    assert last
    assert rest == ""


def test_github_escapes_separators() -> None:
    line = render(finding("a,b:c%.py", "100 %\nsure"), "github").split("\n")[0]
    assert "file=a%2Cb%3Ac%25.py," in line
    assert "::100 %25%0Asure. " in line


def test_github_names_cell_of_notebook() -> None:
    line = render(finding("a.ipynb", cell=4), "github").split("\n")[0]
    assert line.startswith("::error title=KD402 lint.jit-compile,file=a.ipynb::cell 4, line 3: m. ")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_ends_with_one_line_feed(report: LintReport, name: str) -> None:
    assert render(report, name).endswith("\n")
    assert not render(report, name).endswith("\n\n")


def test_json_escapes_bytes_of_paths_that_are_not_utf8() -> None:
    document = json.loads(render(finding(path="caf\udce9.py"), "json"))
    assert document["files"] == ["caf\\udce9.py"]
    assert document["findings"][0]["path"] == "caf\\udce9.py"
