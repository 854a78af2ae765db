"""JSON output has exactly the keys that ``kdoctor schema`` describes."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from helpers import machines
from helpers.checklist_texts import untrained
from helpers.command import kdoctor, kdoctor_here

LIST = """\
schema: kdoctor/checklist/v1
name: job
version: 1
owner: ada
extends: cpu-smoke
"""


def strict(schema: Any) -> Any:
    """The schema with closed objects, so that undocumented keys are found."""
    if isinstance(schema, dict):
        closed = {key: strict(value) for key, value in schema.items()}
        return {**closed, "additionalProperties": False} if isinstance(schema.get("properties"), dict) else closed
    return [strict(item) for item in schema] if isinstance(schema, list) else schema


def hold(document: str, *printed: str) -> list[Any]:
    schema = json.loads(kdoctor_here("schema", document).stdout)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(strict(schema))
    documents = [json.loads(text) for text in printed]
    assert documents
    for read in documents:
        validator.validate(read)
    return documents


@pytest.fixture
def jobs(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(LIST)
    new.write_text(LIST + "checks: [{id: smoke.starved-replica, severity: info}]\n")
    return old, new


def test_checklist_diff_matches_schema(jobs: tuple[Path, Path]) -> None:
    done = kdoctor_here("checklist", "diff", *jobs, "--format", "json")
    (document,) = hold("checklist-diff", done.stdout)
    assert document["changes"]


def test_history_export_matches_schema(jobs: tuple[Path, Path], tmp_path: Path) -> None:
    variables = {"KDOCTOR_HISTORY": str(tmp_path / "history.sqlite"), "KDOCTOR_NO_HISTORY": ""}
    for select in ("versions", "host"):
        kdoctor("check", "-c", jobs[0], "--select", select, "--quiet", variables=variables)
    lines = kdoctor("history", "export", variables=variables).stdout.splitlines()
    assert [line["scope"] for line in hold("history", *lines)] == ["--select versions", "--select host"]


def test_lint_matches_schema(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    text = "import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\nmodel = tf.keras.Sequential()\n"
    text += "with strategy.scope():\n    model.compile()\n    model.fit(x, batch_size=8)\n"
    script.write_text(text)
    named = json.loads(kdoctor_here("lint", "--format", "json", script).stdout)["findings"][0]
    lines = text.splitlines()
    lines[named["line"] - 1] += f"  # kdoctor: ignore[{named['rule']}] a test"
    script.write_text("\n".join([*lines, text]))
    (document,) = hold("lint", kdoctor_here("lint", "--format", "json", script).stdout)
    assert document["findings"]
    assert document["ignored"]


@pytest.mark.parametrize(
    "asked",
    [
        ("--driver", "535.161.08", "--gpu", "A100", "--python", "3.11"),
        ("--tensorflow", "2.16"),
        ("--tensorflow", "2.19", "--driver", "470.82.01", "--gpu", "H100"),
        (),
    ],
)
def test_matrix_matches_schema(asked: tuple[str, ...]) -> None:
    (document,) = hold("matrix", kdoctor_here("matrix", *asked, "--format", "json").stdout)
    assert document["releases"] or document["needs"]


@pytest.mark.compiler
@pytest.mark.skipif(sys.platform != "linux", reason="NVML and sysfs are Linux'")
@pytest.mark.parametrize("machine", ["a100-pcie", "l4-one-x1"])
def test_topology_matches_schema(machine: str, tmp_path: Path) -> None:
    done = kdoctor("topology", "--format", "json", variables=machines.environment(machine, tmp_path))
    (document,) = hold("topology", done.stdout)
    assert document["choices"]


def test_rollback_matches_schema(jobs: tuple[Path, Path]) -> None:
    job = jobs[0].with_name("job.yaml")
    job.write_text(untrained("host.disk"))
    recorded = kdoctor("checklist", "record", job)
    assert recorded.returncode == 0, recorded.stderr
    (document,) = hold(
        "rollback", kdoctor("rollback", "-c", job, "-f", "json", variables={"NCCL_P2P_DISABLE": "1"}).stdout
    )
    assert [step["in_shell"] for step in document["steps"]] == [True]
