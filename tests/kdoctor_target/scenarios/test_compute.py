"""Products and copies on two CPU devices, with the real TensorFlow and JAX: which measures exist, not their values."""

import pytest

from helpers import smoke
from kdoctor.catalog.load import load_catalog
from kdoctor.facts import SmokeRun
from kdoctor.smoke.session import SmokeSettings

SCENARIOS = load_catalog().scenarios


@pytest.mark.tensorflow
@pytest.mark.parametrize("scenario", sorted(SCENARIOS.keys() & {"smoke.compute", "smoke.compute-jax"}))
def test_each_device_is_measured(scenario: str) -> None:
    wanted = [SCENARIOS[scenario]]
    result = smoke.run_scenarios(wanted, SmokeSettings(devices_kind="cpu", replicas=2), smoke.context()).runs[scenario]
    assert isinstance(result, SmokeRun), result
    (case,) = result.cases
    assert case.outcome == "trained", case
    assert (case.replicas, len(case.devices)) == (2, 2)
    assert set(case.measures) == {f"{what} {place}" for what in ("tflops", "copy_gbs") for place in range(2)}
    assert all(value and value > 0 for value in case.measures.values())
