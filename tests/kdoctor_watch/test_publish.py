import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kdoctor.model import Action, Finding, Remedy, Rollback, Severity
from kdoctor_watch.publish import Publisher, WatchFinding, tag_run

FOUND = WatchFinding(
    check="watch.finite",
    severity=Severity.ERROR,
    finding=Finding(
        subject="loss",
        observed="NaN",
        expected="finite values",
        remedy=Remedy(summary="Stop.", action=Action.CHANGE_CODE),
        rollback=Rollback.nothing("not needed"),
    ),
    step=3,
)


def test_finding_goes_to_the_log_and_to_the_function(caplog: pytest.LogCaptureFixture) -> None:
    taken: list[WatchFinding] = []
    Publisher(taken.append, None).publish(FOUND)
    assert taken == [FOUND]
    assert [(record.name, record.levelno) for record in caplog.records] == [("kdoctor.watch", logging.ERROR)]
    assert "watch.finite: loss" in caplog.text


def test_function_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: WatchFinding) -> None:
        raise KeyError("receiver")

    Publisher(fail, None).publish(FOUND)
    assert "on_finding failed: KeyError: 'receiver'" in caplog.text


def test_receiver_that_fails_each_time_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    publisher = Publisher(None, tmp_path / "board")
    for step in range(3):
        publisher.numbers({"step_ms": 1.0}, step)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "TensorFlow" in caplog.text


class Run:
    def __init__(self) -> None:
        self.tags: tuple[str, ...] | None = None
        self.config = self
        self.values: dict[str, str] = {}

    def update(self, values: dict[str, str], **_: Any) -> None:
        self.values |= values


def test_active_runs_of_trackers_get_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    tags: dict[str, str] = {}
    run = Run()
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(active_run=object, set_tags=tags.update))
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=run))
    tag_run({"kdoctor.verdict": "pass", "kdoctor.lock": "sha256:1"})
    assert tags == run.values == {"kdoctor.verdict": "pass", "kdoctor.lock": "sha256:1"}
    assert run.tags == ("kdoctor:pass",)
    run.tags = (*run.tags, "of the user's")
    tag_run({"kdoctor.verdict": "fail"})
    assert run.tags == ("of the user's", "kdoctor:fail")


def test_trackers_without_a_run_get_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tags: dict[str, str] = {}
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(active_run=lambda: None, set_tags=tags.update))
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=None))
    tag_run({"kdoctor.verdict": "pass"})
    assert tags == {}


def test_tracker_that_fails_does_not_end_the_training(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise ConnectionError("offline")

    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(active_run=object, set_tags=fail))
    tag_run({"kdoctor.verdict": "pass"})
    assert "ConnectionError: offline" in caplog.text
