"""Whether an uneven final batch does no harm where it should do none."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks.smoke._cases import (
    MEASURE_ONLY,
    TOLERANCE,
    did_not_finish,
    missing,
    name_of,
    no_real_spread,
    show,
    wrong_arithmetic,
)

_FED, _GUARDED = "fed-tail", "guarded"


@check(
    "smoke.uneven-final-batch",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.uneven-final-batch",
)
def uneven_final_batch(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """A final batch that feeds every replica leaves finite weights, and one that is dropped leaves one device's.

    Why: few data sets divide evenly. A final batch that is uneven but feeds every replica biases its step a little
    (each replica's mean counts the same), which is known and no failure; it must be finite. With
    ``drop_remainder=True`` nothing is left to differ, so anything but one device's weights, within ``tolerance``, is
    wrong arithmetic.
    Remedy: use a TensorFlow and a Keras that are known to work together (Keras 3.10 or later).
    Sources:
        https://www.tensorflow.org/api_docs/python/tf/distribute/Strategy#experimental_distribute_dataset
        https://www.tensorflow.org/tutorials/distribute/input
    """
    for name in (_FED, _GUARDED):
        case = run.case(name)
        if case is None:
            yield missing(run, name)
        elif case.outcome != "trained":
            yield did_not_finish(run, case)
        else:
            yield no_real_spread(run, case) or _judge(run, case, target, packages, tolerance)


def _judge(
    run: SmokeRun,
    case: SmokeCase,
    target: Target | Unavailable,
    packages: Packages | Unavailable,
    tolerance: float,
) -> Outcome:
    batch = f"final batch of {case.final_batch} over {case.replicas} replicas"
    if case.weights is None or not case.losses:
        return Unjudged(subject=name_of(case), reason="its weights or its losses were not read")
    if case.weights.nonfinite or None in case.losses:
        return _not_finite(run, case, batch)
    if case.weight_deviation is None:
        return Unjudged(subject=name_of(case), reason="its weights were not compared with one device")
    if case.name == _GUARDED and case.weight_deviation > tolerance:
        observed = f"weights differ by up to {case.weight_deviation:.2g} (tolerance {tolerance:g})"
        return wrong_arithmetic(run, case, observed, target, packages)
    return Evidence(
        subject=name_of(case),
        observed=f"{batch}: finite, losses {show(case.losses)}, "
        f"weights within {case.weight_deviation:.2g} of one device",
    )


def _not_finite(run: SmokeRun, case: SmokeCase, batch: str) -> Finding:
    held = f"NaN or infinity in {some(case.weights.nonfinite)}; " if case.weights and case.weights.nonfinite else ""
    return Finding(
        subject=name_of(case),
        observed=f"{batch}: {held}losses {show(case.losses)}",
        expected="finite weights and losses, for every replica has examples in every step",
        remedy=Remedy(
            summary=f"Do not train over several replicas with {run.keras or 'this Keras'} and TensorFlow "
            f"{run.tensorflow or ''}: use a pair of versions that is known to work.",
            action=Action.REINSTALL,
        ),
        rollback=MEASURE_ONLY,
    )
