"""The quick tier with the real TensorFlow on two CPU replicas, compared with the results in docs/smoke.md."""

from pathlib import Path

import pytest

from helpers import smoke
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Status
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor.smoke.session import SmokeSettings
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.baseline import baseline
from kdoctor_checks.smoke.model_outside_scope import model_outside_scope
from kdoctor_checks.smoke.starved_replica import starved_replica
from kdoctor_checks.smoke.uneven_final_batch import uneven_final_batch

pytestmark = pytest.mark.tensorflow

ROUNDING = 1e-6
QUICK = tuple(scenario for scenario in SCENARIOS if scenario.tier == "quick")

_SUMMED_GRADIENTS = """
import tensorflow as tf

plain = tf.keras.optimizers.SGD.__init__

def summed(self, learning_rate, *args, **kwargs):
    plain(self, learning_rate * tf.distribute.get_strategy().num_replicas_in_sync, *args, **kwargs)

tf.keras.optimizers.SGD.__init__ = summed
"""


@pytest.fixture(scope="module")
def runs() -> dict[str, SmokeRun]:
    settings = SmokeSettings(devices_kind="cpu", replicas=2)
    result = smoke.run_scenarios(QUICK, settings, smoke.context(TF_USE_LEGACY_KERAS="0"))
    return {name: run for name, run in result.runs.items() if isinstance(run, SmokeRun)}


def _case(runs: dict[str, SmokeRun], scenario: str, name: str) -> SmokeCase:
    case = runs[scenario].case(name)
    assert case is not None, runs[scenario]
    assert case.replicas == 2, case
    return case


def test_all_cases_of_all_scenarios_run(runs: dict[str, SmokeRun]) -> None:
    assert {name: tuple(case.name for case in run.cases) for name, run in runs.items()} == {
        scenario.id: scenario.cases for scenario in QUICK
    }
    assert all(run.tensorflow and run.keras and run.failure is None for run in runs.values())


def test_baseline_matches_one_device(runs: dict[str, SmokeRun]) -> None:
    case = _case(runs, "smoke.baseline", "mirrored")
    assert case.weights is not None
    assert (case.weights.variables, case.weights.mirrored) == (4, 4)
    assert case.weight_deviation is not None
    assert case.weight_deviation < ROUNDING
    assert case.losses == pytest.approx(case.reference_losses, rel=1e-5)
    assert all(value is not None for value in (case.build_s, case.first_step_s, case.step_s, case.peak_memory_bytes))
    assert compute_check(baseline, runs["smoke.baseline"]).status is Status.PASS


@pytest.mark.smoke_full
def test_one_replica_matches_numpy() -> None:
    settings = SmokeSettings(devices_kind="cpu", replicas=1)
    run = smoke.run_scenarios(QUICK[:1], settings, smoke.context(TF_USE_LEGACY_KERAS="0")).runs["smoke.baseline"]
    assert isinstance(run, SmokeRun)
    (case,) = run.cases
    assert (case.replicas, case.measures) == (1, {"numpy": 1.0})
    assert case.weight_deviation is not None
    assert 0 < case.weight_deviation < ROUNDING
    assert case.losses == pytest.approx(case.reference_losses, rel=1e-5)
    assert compute_check(baseline, run).status is Status.PASS


def test_fed_tail_is_finite_and_deviates(runs: dict[str, SmokeRun]) -> None:
    case = _case(runs, "smoke.uneven-final-batch", "fed-tail")
    assert case.weights is not None
    assert case.weights.nonfinite == ()
    assert case.weight_deviation is not None
    assert case.weight_deviation > 0.01


def test_starved_replica_silently_corrupts_weights(runs: dict[str, SmokeRun]) -> None:
    case = _case(runs, "smoke.uneven-final-batch", "starved-tail")
    assert case.outcome == "trained"
    assert case.weights is not None
    assert any("gamma" in name for name in case.weights.nonfinite)
    assert case.losses[0] is not None
    assert case.losses[1] is None
    assert compute_check(starved_replica, runs["smoke.uneven-final-batch"]).status is Status.FAIL


def test_guarded_final_batch_matches_one_device(runs: dict[str, SmokeRun]) -> None:
    case = _case(runs, "smoke.uneven-final-batch", "guarded")
    assert case.weight_deviation is not None
    assert case.weight_deviation < ROUNDING
    assert compute_check(uneven_final_batch, runs["smoke.uneven-final-batch"]).status is Status.PASS


def test_model_outside_scope_is_refused_or_visible(runs: dict[str, SmokeRun]) -> None:
    refused = _case(runs, "smoke.model-outside-scope", "compile-inside")
    assert (refused.outcome, refused.error_type, refused.error_message) == ("raised", "AssertionError", "")
    silent = _case(runs, "smoke.model-outside-scope", "all-outside")
    assert silent.outcome == "trained"
    assert silent.weights is not None
    assert (silent.weights.variables, silent.weights.mirrored) == (4, 0)
    assert compute_check(model_outside_scope, runs["smoke.model-outside-scope"]).status is Status.PASS


@pytest.mark.smoke_full
def test_summed_gradients_are_detected(tmp_path: Path) -> None:
    (tmp_path / "summed_gradients.py").write_text(_SUMMED_GRADIENTS, encoding="utf-8")
    settings = SmokeSettings(devices_kind="cpu", replicas=2, preload=("tensorflow", "summed_gradients"))
    where = smoke.context(TF_USE_LEGACY_KERAS="0", PYTHONPATH=str(tmp_path))
    run = smoke.run_scenarios(QUICK[:1], settings, where).runs["smoke.baseline"]
    assert isinstance(run, SmokeRun)
    result = compute_check(baseline, run)
    assert result.status is Status.FAIL
    assert max(case.weight_deviation or 0.0 for case in run.cases) > 1e-3
