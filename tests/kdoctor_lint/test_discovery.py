"""A new rule is one file in ``kdoctor_lint/rules``. Nothing else names it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import kdoctor_lint
from kdoctor_lint.registry import RULES

NEW_RULE = '''"""The rule lint.no-plaid."""

from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Trace
from kdoctor_lint.model import Hit, Rule


def _judge(trace: Trace) -> Iterator[Hit]:
    for call in trace.calls:
        if call.name == "keras.distribution.plaid":
            yield call.node, "devices are connected by plaid"


RULE = Rule(
    id="lint.no-plaid",
    code="KD499",
    severity=Severity.ERROR,
    title="Checks for plaid.",
    why="It is slow.",
    fix="Do not use plaid.",
    bad="import keras\\n\\nkeras.distribution.plaid()\\n",
    good="import keras\\n",
    sources=("https://keras.io/",),
    judge=_judge,
    words=("plaid",),
)
'''


def python(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, *args], cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=60
    )


def test_new_file_is_the_whole_rule(tmp_path: Path) -> None:
    package = tmp_path / "kdoctor_lint"
    shutil.copytree(Path(kdoctor_lint.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "rules" / "no_plaid.py").write_text(NEW_RULE, encoding="utf-8")
    (tmp_path / "train.py").write_text("from tensorflow.keras import distribution\n\ndistribution.plaid()\n")

    done = python(tmp_path, "-m", "kdoctor", "lint", "-f", "json", "-o", "sarif=out.sarif", "train.py")
    assert done.returncode == 1, done.stderr
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["rule"], finding["line"]) == ("lint.no-plaid", 3)
    (run,) = json.loads((tmp_path / "out.sarif").read_text(encoding="utf-8"))["runs"]
    assert "lint.no-plaid" in [rule["id"] for rule in run["tool"]["driver"]["rules"]]

    assert python(tmp_path, "-m", "kdoctor", "lint", "--explain", "no-plaid").stdout.startswith("KD499 lint.no-plaid")
    page = python(tmp_path, "-c", "from kdoctor_lint.docs.pages import pages; print(*pages().values())").stdout
    assert "# lint.no-plaid\n" in page


def test_rules_are_ordered_by_id_with_internal_ones_last() -> None:
    assert list(RULES) == sorted(RULES, key=lambda name: (RULES[name].judge is None, name))
    assert list(RULES)[-4:] == [
        "lint.ignore-without-reason",
        "lint.syntax-error",
        "lint.unreadable-file",
        "lint.unused-ignore",
    ]


def test_rules_have_texts_of_their_name() -> None:
    files = {path.stem for path in (Path(kdoctor_lint.__file__).parent / "rules/texts").iterdir()}
    assert files == {name.partition(".")[2] for name, rule in RULES.items() if rule.judge}
