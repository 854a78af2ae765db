"""Fixed programs on real TensorFlow and JAX devices: clean ones agree, and flipped bits are found where they are."""

import pytest

from helpers import smoke
from helpers.planted_scenario import Plant, planted_scenario
from helpers.tiers import asked_for, tiered
from kdoctor.catalog.load import load_catalog
from kdoctor.facts import SmokeRun
from kdoctor.smoke.session import SmokeSettings

SCENARIOS = {name: one for name, one in load_catalog().scenarios.items() if name.startswith("smoke.same-bits")}
pytestmark = pytest.mark.tensorflow

PLANTS: tuple[Plant, ...] = (
    ("output", "product float16", 1, "each-time"),
    ("input", "matrix", 2, "each-time"),
    ("output", "training", 0, "once"),
    ("output", "product bfloat16", 2, "at-first"),
    ("output", "convolution gradients", 1, "last"),
    ("output", "attention", 0, "each-time"),
    ("output", "reductions", 2, "once"),
    ("input", "query", 0, "each-time"),
    ("input", "filters", 1, "each-time"),
    ("output", "product float32", 1, "once"),
)
QUICK = PLANTS[2:3]
READ_FROM = {
    "matrix": {"product float32", "product float16", "product bfloat16", "product float8", "reductions"},
    "query": {"attention"},
    "filters": {"convolution", "convolution gradients"},
}
"""What computes with an input."""


@pytest.fixture(scope="module", params=tiered(sorted(SCENARIOS), SCENARIOS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SmokeRun:
    scenario = SCENARIOS[request.param]
    planted = planted_scenario(scenario, tmp_path_factory.mktemp("planted"), asked_for(request, "plant"))
    settings = SmokeSettings(devices_kind="cpu", replicas=3)
    result = smoke.run_scenarios([planted], settings, smoke.context(XLA_FLAGS=smoke.QUICKLY_COMPILED)).runs[scenario.id]
    assert isinstance(result, SmokeRun), result
    return result


def test_clean_devices_agree(run: SmokeRun) -> None:
    case = run.case("all-devices")
    assert case
    assert case.outcome == "trained", case
    assert (len(case.devices), case.bit_differences) == (3, ())
    assert {"product float16", "convolution gradients", "training"} <= set(case.programs)
    assert (case.measures["rounds"] or 0) >= 3
    assert [case.measures[f"equal {place}"] for place in range(3)] == [2, 2, 2]


@pytest.mark.parametrize("plant", tiered(PLANTS, QUICK), ids=lambda plant: " ".join(map(str, plant)))
def test_flipped_bit_is_found_on_its_device(run: SmokeRun, plant: Plant) -> None:
    case = run.case(" ".join(map(str, plant)))
    assert case
    assert case.outcome == "trained", case
    what, program, place, _ = plant
    wrong = {one.program for one in case.bit_differences}
    assert wrong == (READ_FROM[program] & set(case.programs) if what == "input" else {program})
    assert {one.device for one in case.bit_differences} == {place}
    assert all(one.decided and one.differing >= 1 for one in case.bit_differences)
