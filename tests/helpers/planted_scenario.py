"""A scenario with further cases whose devices compute a wrong bit, with a real framework."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kdoctor.smoke.scenario import Scenario

Plant = tuple[str, str, int, str]
"""What is wrong (an output or an input), its program or name, the place of the device, and when."""
_TESTS = Path(__file__).parents[1]
_PROGRAM = """
from helpers import planted_bits as planted
from kdoctor_target.training import same_bits

if FRAMEWORK == "tensorflow":
    import tensorflow as tf

    from kdoctor_target.training import same_bits_tensorflow as made
    from kdoctor_target.training.replicas import replica_devices

    def put(array, place):
        with tf.device(NAMES[place]):
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

NAMES = []
WHEN = {"each-time": planted.always, "at-first": planted.only(0), "once": planted.only(4), "last": planted.only(7)}


def case_of(plant):
    what, program, place, when = plant

    def run(case):
        names = devices(case)
        NAMES[:] = names
        if what == "input":
            made.inputs = planted.wrong_inputs(same_bits.inputs, place, program)
        programs = made.make_programs(names, same_bits.SIZES[case.devices_kind], trains=True)
        if what == "output":
            programs = planted.wrong_outputs(programs, put, program, {place: WHEN[when]})
        differences = planted.compared(programs, made.models_of(names))
        case.note(programs=list(programs.names), bit_differences=differences, devices=list(map(str, names)))

    return run


CASES = {"all-devices": runpy.run_path(ORIGINAL)["all_devices"]}
CASES |= {" ".join(map(str, plant)): case_of(plant) for plant in PLANTS}
"""


def planted_scenario(scenario: Scenario, folder: Path, plants: Sequence[Plant]) -> Scenario:
    """The scenario with a further case for each plant, named by its words."""
    program = folder / "program.py"
    given = f"FRAMEWORK, ORIGINAL, PLANTS = {scenario.framework!r}, {str(scenario.program)!r}, {tuple(plants)!r}\n"
    also = [str(_TESTS), str(scenario.program.parents[2])]
    program.write_text(f"import runpy\nimport sys\n\nsys.path += {also}\n{given}{_PROGRAM}", encoding="utf-8")
    return replace(scenario, program=program, cases=(*scenario.cases, *(" ".join(map(str, plant)) for plant in plants)))
