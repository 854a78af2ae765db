"""What ``kdoctor.Watch`` writes, read with the real TensorBoard, MLflow and Weights & Biases, without their servers."""

import importlib
from pathlib import Path

import pytest

from kdoctor.model import Action, Finding, Remedy, Rollback, Severity
from kdoctor_watch.publish import Publisher, WatchFinding, tag_run

pytestmark = pytest.mark.services

TAGS = {"kdoctor.verdict": "pass", "kdoctor.lock": "sha256:1"}


def test_mlflow_run_gets_tags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    # In a folder that exists already, MLflow does not create the default experiment.
    mlflow.set_tracking_uri(f"file:{tmp_path / 'runs'}")
    with mlflow.start_run() as run:
        tag_run(TAGS)
    tags = mlflow.get_run(run.info.run_id).data.tags
    assert {name: value for name, value in tags.items() if name.startswith("kdoctor.")} == TAGS


def test_wandb_run_gets_tags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = importlib.import_module("wandb").init(project="kdoctor", dir=tmp_path)
    tag_run(TAGS)
    assert run.tags == ("kdoctor:pass",)
    assert {name: run.config[name] for name in TAGS} == TAGS
    run.finish()


def test_tensorboard_reads_numbers_and_findings(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    tensors = importlib.import_module("tensorboard.util.tensor_util")
    finding = Finding(
        subject="loss",
        observed="NaN",
        expected="finite",
        remedy=Remedy(summary="Lower the rate.", action=Action.CHANGE_CODE),
        rollback=Rollback.nothing("not needed"),
    )
    publisher = Publisher(None, str(tmp_path))
    publisher.numbers({"step_ms": 12.5, "findings": 1.0, "left_out": None}, 7)
    publisher.publish(WatchFinding(check="watch.finite", severity=Severity.ERROR, finding=finding, step=7))
    publisher.close()
    board = events.EventAccumulator(str(tmp_path))
    board.Reload()
    read = {
        tag: [(event.step, tensors.make_ndarray(event.tensor_proto).item()) for event in board.Tensors(tag)]
        for tag in board.Tags()["tensors"]
    }
    text = b"watch.finite: loss: NaN (expected: finite). Lower the rate."
    assert read == {"kdoctor/step_ms": [(7, 12.5)], "kdoctor/findings": [(7, 1.0)], "watch.finite": [(7, text)]}
    plugins = {tag: board.SummaryMetadata(tag).plugin_data.plugin_name for tag in read}
    assert plugins == {"kdoctor/step_ms": "scalars", "kdoctor/findings": "scalars", "watch.finite": "text"}
