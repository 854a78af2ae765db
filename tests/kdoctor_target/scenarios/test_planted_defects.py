"""Defects planted into the child's Keras or TensorFlow are detected by the scenarios that should detect them."""

from pathlib import Path

import pytest

from helpers import smoke
from helpers.defects import DROPPED_REPLICA, NAN, SKIPPED_UPDATE, WRONG_SHARDS
from kdoctor.check import Check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Status
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor.smoke.session import SmokeSettings
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.baseline import baseline
from kdoctor_checks.smoke.closed_form import closed_form

pytestmark = pytest.mark.tensorflow


def judged(folder: Path, defect: str) -> dict[str, tuple[Status, SmokeCase]]:
    """The check statuses and the cases of both scenarios, with the defect in the child process."""
    (folder / "planted_defect.py").write_text("import tensorflow as tf\n" + defect, encoding="utf-8")
    settings = SmokeSettings(devices_kind="cpu", replicas=2, preload=("tensorflow", "planted_defect"))
    wanted = [scenario for scenario in SCENARIOS if scenario.id in ("smoke.baseline", "smoke.closed-form")]
    where = smoke.context(TF_USE_LEGACY_KERAS="0", PYTHONPATH=str(folder))
    runs = smoke.run_scenarios(wanted, settings, where).runs
    return {check.id: _status_and_case(check, runs[check.id]) for check in (baseline, closed_form)}


def _status_and_case(check: Check, run: object) -> tuple[Status, SmokeCase]:
    assert isinstance(run, SmokeRun), run
    (case,) = run.cases
    return compute_check(check, run).status, case


def assert_both_deviate(results: dict[str, tuple[Status, SmokeCase]]) -> None:
    for status, case in results.values():
        assert status is Status.FAIL
        assert (case.weight_deviation or 0.0) > 1e-3


@pytest.mark.smoke_full
def test_nan_weights_are_detected(tmp_path: Path) -> None:
    for status, case in judged(tmp_path, NAN).values():
        assert status is Status.FAIL
        assert case.weights is not None
        assert case.weights.nonfinite


@pytest.mark.smoke_full
def test_ignored_replica_is_detected(tmp_path: Path) -> None:
    assert_both_deviate(judged(tmp_path, DROPPED_REPLICA))


def test_missing_update_is_detected_only_by_closed_form(tmp_path: Path) -> None:
    results = judged(tmp_path, SKIPPED_UPDATE)
    assert results["smoke.baseline"][0] is Status.PASS
    status, case = results["smoke.closed-form"]
    assert status is Status.FAIL
    assert (case.measures["one_device"] or 0.0) > 1e-3


@pytest.mark.smoke_full
def test_identical_examples_on_all_replicas_are_detected(tmp_path: Path) -> None:
    assert_both_deviate(judged(tmp_path, WRONG_SHARDS))
