from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks.smoke._frameworks import keras_of
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_checks.smoke._random_layers import DEFECT, REMEDY
from kdoctor_checks.smoke._trained import trained


@trained("smoke.other-random-layers", severity=Severity.WARNING)
def other_random_layers(run: SmokeRun, case: SmokeCase) -> Outcome:
    """The other layers with random numbers draw different ones on each replica, and a seed repeats them.

    Why: as for smoke.random-layers, which has Dropout. These are its relatives, noise and random augmentation, each of
    which has its own generator. Two masks of 64 elements are equal by chance once in 2**64 times. The case
    seed-per-replica runs the alternative, which changes the generator of any layer, and trains with it.
    Remedy: add the replica's index to the seed of the layer, or train with tf_keras.
    Source: https://keras.io/api/random/seed_generator/
    Failure modes: keras3_equal_masks
    """
    steps, equal, repeats = case.measures.get("steps"), _starting(case, "equal "), _starting(case, "repeats ")
    if not steps or not equal:
        return unknown(case, "its random numbers were not compared")
    alike = [name for name, count in equal.items() if count == steps]
    if alike:
        return finding(
            case,
            f"the same numbers on {counted(case.replicas, 'replica')} in all {counted(round(steps), 'step')}: "
            f"{some(alike, 6)} ({keras_of(run)})",
            "different random numbers on each replica",
            REMEDY,
            brief=DEFECT.brief,
            explained_by=("job.random-layers", "smoke.random-layers"),
        )
    changing = [name for name, same in repeats.items() if not same]
    if changing:
        observed = f"another layer with the same seed draws other numbers: {some(changing, 6)}"
        remedy = "Do not rely on the seed of these layers to repeat a run."
        return finding(case, observed, "a seed repeats the numbers", remedy, brief="a seed does not repeat numbers")
    return evidence(case, f"different numbers on each replica, repeated by a seed: {', '.join(equal)}")


def _starting(case: SmokeCase, prefix: str) -> dict[str, float | None]:
    return {name.removeprefix(prefix): value for name, value in case.measures.items() if name.startswith(prefix)}
