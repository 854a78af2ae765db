"""The complete flow with the TensorFlow of this environment: read, train, judge, report, record, judge again."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from helpers.command import kdoctor

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("healthy")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def run(folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    options = ("--format", "json", "--save-snapshot", folder / "facts.json")
    return kdoctor(
        "check", "--checklist", "cpu-smoke", *options, variables={"HOME": str(home), "LD_LIBRARY_PATH": f"{home}/lib"}
    )


@pytest.fixture(scope="module")
def record(run: subprocess.CompletedProcess[str], folder: Path) -> Path:
    return folder / "facts.json"


@pytest.fixture(scope="module")
def report(run: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run.stdout)
    return document


def statuses(report: dict[str, Any]) -> dict[str, str]:
    return {result["id"]: result["status"] for result in report["results"]}


def test_healthy_machine_without_gpu_passes(run: subprocess.CompletedProcess[str], report: dict[str, Any]) -> None:
    assert run.returncode == report["exit_code"] == 0
    assert report["verdict"] == "pass"
    errors = [result for result in report["results"] if result["severity"] == "error"]
    assert {result["status"] for result in errors} == {"pass", "skip"}


def test_report_matches_schema(report: dict[str, Any]) -> None:
    schema = json.loads(kdoctor("schema", "report").stdout)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(report)


def test_scenarios_have_measured_outcomes(report: dict[str, Any]) -> None:
    """The outcomes in docs/smoke.md for the Keras of this environment."""
    found = statuses(report)
    assert found["smoke.baseline"] == "pass"
    assert found["smoke.uneven-final-batch"] == "pass"
    assert found["smoke.model-outside-scope"] == "pass"
    assert found["smoke.starved-replica"] == "fail"  # Keras 3: NaN weights without an error


def test_snapshot_matches_schema_and_gives_same_verdicts(report: dict[str, Any], record: Path) -> None:
    schema = json.loads(kdoctor("schema", "snapshot").stdout)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(json.loads(record.read_text()))
    again = kdoctor("check", "--checklist", "cpu-smoke", "--snapshot", record, "--format", "json")
    assert again.returncode == 0
    judged = json.loads(again.stdout)
    assert statuses(judged) == statuses(report)
    assert judged["counts"] == report["counts"]


def test_snapshot_contains_no_home_folder(record: Path, home: Path) -> None:
    text = record.read_text()
    assert "~/lib" in text
    assert f"{home}/" not in text


def test_training_writes_nothing_to_home_folder(run: subprocess.CompletedProcess[str], home: Path) -> None:
    """Keras writes a keras.json when it is first imported. kdoctor must not leave one."""
    assert run.returncode == 0
    assert list(home.iterdir()) == []
