from dataclasses import replace

from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity
from kdoctor_backends.scenarios import CASES, JAX_OPTIMIZERS
from kdoctor_checks.smoke._clipping import judge_clipping
from kdoctor_checks.smoke._judging import Comparison, unknown
from kdoctor_checks.smoke._optimizers import MOVED_LITTLE, has_moved, judge_optimizer
from kdoctor_checks.smoke._precision import judge_precision
from kdoctor_checks.smoke._random_layers import judge_masks
from kdoctor_checks.smoke._trained import trained
from kdoctor_checks.smoke._values import judge_trained, with_remedy

_CLIPPED = ("clipnorm", "global-clipnorm", "clipvalue")
_PRECISION = ("float16", "bfloat16")
_REMEDY = Remedy.change_code(
    "Leave out the feature in jobs over several devices, or train with another release of Keras and JAX."
)
_RANDOM_REMEDY = "Augment the data before fit, or train with another release of Keras and JAX."


@trained(
    "smoke.data-parallel-features", severity=Severity.WARNING, cases=CASES["smoke.data-parallel-features"], requires=()
)
def data_parallel_features(
    run: SmokeRun, compare: Comparison, case: SmokeCase, *, precision_tolerance: float = 0.01
) -> Outcome:
    """Features of real jobs with DataParallel on JAX train as on one device.

    Why: DataParallel is the alternative for features that Keras 3 on TensorFlow gets wrong on several replicas:
    clipping, steps_per_execution, gradient accumulation and random layers. JAX computes them on the whole batch, so
    even the masks of Dropout are those of one device. This is a warning because only jobs that use a feature are
    affected. Measured with Keras 3.15.1 on JAX 0.10.2: all match, float16 within 1e-4 and bfloat16 within 8e-4 of
    float32. Skipped if JAX is not installed.
    Remedy: leave out the feature in jobs over several devices, or train with another release of Keras and JAX.
    Source: https://keras.io/guides/distribution/
    """
    coarse = replace(compare, tolerance=precision_tolerance, loss_tolerance=10 * precision_tolerance)
    if case.name == "random-layers":
        return judge_masks(run, case, _RANDOM_REMEDY)
    if case.name in JAX_OPTIMIZERS:
        outcome = judge_optimizer(compare, case)
    elif case.name in _CLIPPED:
        outcome = judge_clipping(compare, case)
    else:
        outcome = judge_precision(coarse, case) if case.name in _PRECISION else judge_trained(compare, case)
    if isinstance(outcome, Finding):
        return with_remedy(replace(outcome, remedy=replace(outcome.remedy, look=())), _REMEDY, outcome.brief)
    if isinstance(outcome, Evidence) and not has_moved(compare, case):
        return unknown(case, MOVED_LITTLE)
    if isinstance(outcome, Evidence) and case.name == "dropout":
        masks = judge_masks(run, case, _RANDOM_REMEDY)
        return (
            replace(masks, observed=f"{outcome.observed}; {masks.observed}") if isinstance(masks, Evidence) else masks
        )
    return outcome
