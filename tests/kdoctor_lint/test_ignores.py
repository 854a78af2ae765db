from pathlib import Path

import pytest

from kdoctor_lint.engine import lint
from kdoctor_lint.model import LintReport

HEAD = "import keras\nimport tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\n"
SCOPE = "with strategy.scope():\n    model = keras.Sequential([keras.layers.Dense(1)])\n"
COMPILE = "model.compile(optimizer='adam', loss='mse')"


def report(tmp_path: Path, code: str) -> LintReport:
    path = tmp_path / "train.py"
    path.write_text(code, encoding="utf-8")
    return lint([str(path)])


def ids(found: LintReport) -> list[str]:
    return [item.rule.id for item in found.findings]


@pytest.mark.parametrize(
    "line",
    [
        f"{COMPILE}  # kdoctor: ignore[lint.compile-outside-scope] Keras 2 runs it",
        f"{COMPILE}  #kdoctor:ignore[compile-outside-scope]: Keras 2 runs it",
        f"{COMPILE}  # kdoctor: ignore[lint.compile-outside-scope] - Keras 2 runs it",
        f"# kdoctor: ignore[lint.compile-outside-scope] Keras 2 runs it\n{COMPILE}",
        f"# kdoctor: ignore[lint.compile-outside-scope] Keras 2 runs it\n\n# More.\n{COMPILE}",
        "model.compile(\n    'adam',\n    'mse',  # kdoctor: ignore[lint.compile-outside-scope] Keras 2 runs it\n)",
    ],
)
def test_comment_with_reason_silences(tmp_path: Path, line: str) -> None:
    found = report(tmp_path, f"{HEAD}{SCOPE}{line}\n")
    assert ids(found) == []
    assert [(item.finding.rule.id, item.reason) for item in found.ignored] == [
        ("lint.compile-outside-scope", "Keras 2 runs it")
    ]


@pytest.mark.parametrize(
    "comment", ["ignore[lint.compile-outside-scope]", "ignore[lint.compile-outside-scope] -", "ignore"]
)
def test_comment_without_reason_is_finding(tmp_path: Path, comment: str) -> None:
    found = report(tmp_path, f"{HEAD}{SCOPE}{COMPILE}  # kdoctor: {comment}\n")
    assert ids(found) == ["lint.compile-outside-scope", "lint.ignore-without-reason"]


def test_unused_comment_is_finding(tmp_path: Path) -> None:
    found = report(tmp_path, "x = 1  # kdoctor: ignore[lint.no-prefetch] in memory\n")
    assert ids(found) == ["lint.unused-ignore"]
    assert (found.findings[0].spot.line, found.findings[0].spot.column) == (1, 8)


def test_unknown_rule_suggests_near_miss(tmp_path: Path) -> None:
    found = report(tmp_path, "x = 1  # kdoctor: ignore[lint.no-prefech] in memory\n")
    assert ids(found) == ["lint.unused-ignore"]
    assert "'lint.no-prefech'" in found.findings[0].message
    assert "'lint.no-prefetch'" in found.findings[0].message


def test_comment_silences_several_rules(tmp_path: Path) -> None:
    model = "model = keras.Sequential([keras.layers.Dense(1)])\nmodel.compile('adam', 'mse')\n"
    fit = (
        "model.fit(tf.data.Dataset.range(9).map(f).batch(3))  # kdoctor: ignore[lint.fixed-batch, no-prefetch] a toy\n"
    )
    body = "with strategy.scope():\n    " + model.replace("\n", "\n    ").rstrip() + "\n"
    found = report(tmp_path, f"{HEAD}{body}{fit}")
    assert ids(found) == []
    assert len(found.ignored) == 2


@pytest.mark.parametrize("rule", ["lint.syntax-error", "lint.unreadable-file"])
def test_syntax_error_cannot_be_silenced(tmp_path: Path, rule: str) -> None:
    found = report(tmp_path, f"x = = 1  # kdoctor: ignore[{rule}] later\n")
    assert ids(found) == ["lint.syntax-error"]


def test_string_is_not_a_comment(tmp_path: Path) -> None:
    assert ids(report(tmp_path, 'x = "# kdoctor: ignore[lint.no-prefetch]"\n')) == []


@pytest.mark.parametrize("comment", ["noqa: KD102", "NOQA:kd102", "noqa: E501, KD102 Keras 2", "noqa: E501 KD102"])
def test_noqa_with_code_silences_without_reason(tmp_path: Path, comment: str) -> None:
    found = report(tmp_path, f"{HEAD}{SCOPE}{COMPILE}  # {comment}\n")
    assert ids(found) == []
    assert [item.finding.rule.code for item in found.ignored] == ["KD102"]


@pytest.mark.parametrize("comment", ["noqa", "noqa: E501", "noqa: KD101x", "noqa: KD204"])
def test_other_noqa_silences_nothing(tmp_path: Path, comment: str) -> None:
    found = report(tmp_path, f"{HEAD}{SCOPE}{COMPILE}  # {comment}\n")
    assert "lint.compile-outside-scope" in ids(found)


def test_ignore_comment_may_name_code(tmp_path: Path) -> None:
    found = report(tmp_path, f"{HEAD}{SCOPE}{COMPILE}  # kdoctor: ignore[KD102] Keras 2 runs it\n")
    assert ids(found) == []
