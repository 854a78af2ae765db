from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases
from kdoctor_checks.smoke._values import with_remedy

_REMEDY = (
    "In jobs whose loss is one number (keras.losses.Dice and Tversky are), return it for each example: "
    "loss * tf.ones(tf.shape(y_true)[:1])."
)


@check(
    "smoke.scalar-loss", severity=Severity.WARNING, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.losses"
)
def scalar_loss(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """A loss function that returns one number for the batch trains as on one device.

    Why: Keras 3 divides the losses of the examples by the number of replicas, but not a loss that is already one
    number. The replicas' gradients are then summed instead of averaged, as if the learning rate were multiplied by the
    number of replicas, without an error, and fit and evaluate report that multiple of the loss. keras.losses.Dice and
    Tversky, and many custom losses, return one number. This is a warning because other losses are not affected. The
    case scalar-loss-repeated trains the alternative.
    Remedy: return the loss for each example, or multiply the number by tf.ones(tf.shape(y_true)[:1]).
    Source: https://keras.io/api/losses/
    Failure modes: keras3_scalar_loss
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        outcome = compare.judge(case)
        return (
            with_remedy(outcome, _REMEDY, "sums a scalar loss over replicas") if case.name == "scalar-loss" else outcome
        )

    yield from judge_cases(run, ("scalar-loss", "scalar-loss-repeated"), judge)
