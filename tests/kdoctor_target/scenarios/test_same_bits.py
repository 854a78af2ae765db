"""Fixed programs on real TensorFlow and JAX devices: clean ones agree, and flipped bits are found where they are."""

from dataclasses import replace
from pathlib import Path

import pytest

from helpers import smoke
from helpers.tiers import asked_for, tiered
from kdoctor.catalog.load import load_catalog
from kdoctor.facts import SmokeRun
from kdoctor.smoke.session import SmokeSettings

SCENARIOS = {name: one for name, one in load_catalog().scenarios.items() if name.startswith("smoke.same-bits")}
pytestmark = pytest.mark.tensorflow

TESTS = Path(__file__).parents[2]
_PROGRAM = """
from helpers import planted_bits as planted
from kdoctor_target.training import same_bits

if FRAMEWORK == "tensorflow":
    import tensorflow as tf

    from kdoctor_target.training import same_bits_tensorflow as made
    from kdoctor_target.training.replicas import replica_devices

    def put(array, place):
        with tf.device(f"CPU:{place}"):
            return tf.constant(array)

    def devices(case):
        names = replica_devices(case)
        tf.keras.utils.set_random_seed(1)
        tf.config.experimental.enable_op_determinism()
        return names
else:
    import jax

    from kdoctor_target.training import same_bits_jax as made

    def put(array, place):
        return jax.device_put(array, jax.devices()[place])

    def devices(case):
        return jax.devices()[: case.replicas]

WHEN = {"each-time": planted.always, "at-first": planted.only(0), "once": planted.only(4), "last": planted.only(7)}


def case_of(plant):
    what, program, place, when = plant

    def run(case):
        names = devices(case)
        if what == "input":
            made.inputs = planted.wrong_inputs(same_bits.inputs, place, program)
        programs = made.make_programs(names, same_bits.SIZES["cpu"], trains=True)
        if what == "output":
            programs = planted.wrong_outputs(programs, put, program, {place: WHEN[when]})
        differences = planted.compared(programs, made.models_of(names))
        case.note(programs=list(programs.names), bit_differences=differences, devices=list(map(str, names)))

    return run


CASES = {" ".join(map(str, plant)): case_of(plant) for plant in PLANTS}
"""

Plant = tuple[str, str, int, str]
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
QUICK = PLANTS[:3]
READ_FROM = {
    "matrix": {"product float32", "product float16", "product bfloat16", "product float8", "reductions"},
    "query": {"attention"},
    "filters": {"convolution", "convolution gradients"},
}
"""What computes with an input."""


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
def test_clean_devices_agree(scenario: str) -> None:
    settings = SmokeSettings(devices_kind="cpu", replicas=3)
    result = smoke.run_scenarios([SCENARIOS[scenario]], settings, smoke.context()).runs[scenario]
    assert isinstance(result, SmokeRun), result
    (case,) = result.cases
    assert case.outcome == "trained", case
    assert (len(case.devices), case.bit_differences) == (3, ())
    assert {"product float16", "convolution gradients", "training"} <= set(case.programs)
    assert (case.measures["rounds"] or 0) >= 3
    assert [case.measures[f"equal {place}"] for place in range(3)] == [2, 2, 2]


@pytest.fixture(scope="module", params=sorted(SCENARIOS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SmokeRun:
    scenario = SCENARIOS[request.param]
    program = tmp_path_factory.mktemp("planted") / "program.py"
    plants = asked_for(request, "plant")
    given = f"import sys\n\nsys.path.append({str(TESTS)!r})\nFRAMEWORK, PLANTS = {scenario.framework!r}, {plants!r}\n"
    program.write_text(given + _PROGRAM, encoding="utf-8")
    cases = tuple(" ".join(map(str, plant)) for plant in plants)
    planted = replace(scenario, program=program, cases=cases)
    settings = SmokeSettings(devices_kind="cpu", replicas=3)
    result = smoke.run_scenarios([planted], settings, smoke.context()).runs[scenario.id]
    assert isinstance(result, SmokeRun), result
    return result


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
