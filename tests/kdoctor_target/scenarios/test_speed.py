"""The speed on one and on several replicas, with the real TensorFlow: which measures exist, not their values."""

import pytest

from helpers import smoke
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor.smoke.session import SmokeSettings
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.speed import speed


@pytest.mark.smoke_full
def test_strategies_of_one_two_and_three_devices_are_independent() -> None:
    wanted = [scenario for scenario in SCENARIOS if scenario.id == "smoke.speed"]
    settings = SmokeSettings(devices_kind="cpu", replicas=3)
    # tf_keras: under it, strategies of two and of three devices in one process break each other's collectives.
    result = smoke.run_scenarios(wanted, settings, smoke.context(TF_USE_LEGACY_KERAS="1")).runs["smoke.speed"]
    assert isinstance(result, SmokeRun), result
    (case,) = result.cases
    assert set(case.measures) == {
        *(f"{what} {replicas}" for what in ("per_s", "step") for replicas in (1, 2, 3)),
        *("efficiency", "all_reduce_gbs", "input_per_s"),
    }
    assert all(value and value > 0 for value in case.measures.values())
    assert case.measures["efficiency"] == pytest.approx(
        (case.measures["per_s 3"] or 0) / (case.measures["per_s 1"] or 1) / 3
    )
    assert case.step_s == case.measures["step 3"]
    judged = compute_check(speed, result)
    assert judged.status is Status.PASS
    assert [item.subject for item in judged.evidence][-2:] == ["all-reduce", "input pipeline"]
