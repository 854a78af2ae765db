"""Static checks, smoke trainings and the version matrix agree on real environments.

``make test-matrix`` runs these tests and downloads about 600 MB per TensorFlow release. Environment variables:

- ``MATRIX_PYTHONS``: interpreters in addition to those on PATH, separated as in PATH. Cases without a Python are
  skipped, and the table lists them.
- ``MATRIX_FOLDER``: keeps the environments for the next run, 2 GB each. Without it, each is deleted after its test.
- ``MATRIX_TABLE``: file for the table.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from helpers.command import captured, kdoctor
from helpers.real_environments import interpreter, make
from kdoctor.matrix.keras import BASELINE
from kdoctor.matrix.load import load_matrix

pytestmark = [pytest.mark.matrix]

CASES = (
    ("2.15.1", None, "3.9"),
    ("2.16.2", None, "3.9"),
    ("2.16.2", None, "3.11"),
    ("2.17.1", None, "3.11"),
    ("2.18.1", None, "3.10"),
    ("2.18.1", None, "3.11"),
    ("2.18.1", "3.6.0", "3.11"),
    ("2.19.1", None, "3.11"),
    ("2.19.1", "3.9.2", "3.11"),
    ("2.20.0", None, "3.12"),
    ("2.21.0", None, "3.11"),
    ("2.21.0", None, "3.13"),
)
"""TensorFlow, pinned Keras (None for the one pip resolves) and Python."""

_HEADER = ("TensorFlow", "Python", "Keras", "measured before", "static result", "smoke result", "agree")


@dataclass
class Table:
    """The result for each environment."""

    rows: list[tuple[str, ...]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [_HEADER, tuple("---" for _ in _HEADER), *sorted(self.rows, key=lambda row: row[:2])]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


@pytest.fixture(scope="session")
def table() -> Iterator[Table]:
    collected = Table()
    yield collected
    print(f"\n{collected}")  # noqa: T201 - shown by pytest -s
    if file := os.environ.get("MATRIX_TABLE"):
        Path(file).write_text(str(collected), encoding="utf-8")


def examine(executable: Path) -> dict[str, dict[str, Any]]:
    """The results by check id."""
    select = ("--select", "versions", "--select", "smoke.baseline")
    done = kdoctor("check", "-c", "cpu-smoke", "--python", executable, *select, "-f", "json", timeout_s=600)
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return {result["id"]: result for result in report["results"]}


def installed(executable: Path, name: str) -> str:
    ask = f"from importlib.metadata import version; print(version({name!r}))"
    return captured([executable, "-c", ask], check=True).stdout.strip()


def verdict(results: list[dict[str, Any]]) -> str:
    """``pass``, or the failed and unknown checks. Skipped checks do not count."""
    bad = [f"{item['id']}: {item['status']}" for item in results if item["status"] in ("fail", "unknown")]
    passed = any(item["status"] == "pass" for item in results)
    return ", ".join(bad) or ("pass" if passed else "nothing evaluated")


@pytest.mark.parametrize(("tensorflow", "keras", "minor"), CASES)
def test_checks_trainings_and_matrix_agree(
    tensorflow: str, keras: str | None, minor: str, folder: Path, table: Table
) -> None:
    python = interpreter(minor)
    if python is None:
        table.rows.append((tensorflow, minor, keras or "resolved", "", "", "", f"not run: no Python {minor}"))
        pytest.skip(f"Python {minor} was not found; MATRIX_PYTHONS can name an interpreter")
    executable = make(folder, python, (tensorflow, keras, minor))
    found = installed(executable, "keras")
    known = load_matrix().keras_feature(BASELINE, "keras", found).result
    assert known is not None, f"Keras {found} was not measured"
    results = examine(executable)
    static = verdict([result for result in results.values() if result["family"] == "versions"])
    smoke = verdict([result for result in results.values() if result["family"] == "smoke"])
    correct = known == "right"
    agree = ((static == "pass") == correct, (smoke == "pass") == correct)
    pinned = " (pinned)" if keras else ""
    table.rows.append((tensorflow, minor, f"{found}{pinned}", known, static, smoke, "yes" if all(agree) else "NO"))
    assert agree == (True, True), (known, static, smoke)
