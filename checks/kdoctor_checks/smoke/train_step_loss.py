from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases
from kdoctor_checks.smoke._values import with_remedy

_REMEDY = (
    "In a custom train_step, compute the gradients, then update the loss metric with "
    'tf.distribute.get_replica_context().all_reduce("sum", loss).'
)


@check(
    "smoke.train-step-loss",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.losses",
)
def train_step_loss(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """The loss that the train_step of Keras's guide reports is that of one device.

    Why: compute_loss divides the loss by the number of replicas, because gradients are summed. The train_step of the
    guide gives that part to the loss metric, so fit reports the loss divided by the number of replicas. The weights are
    correct. This is a warning because only the reported loss is affected. The case train-step of smoke.losses trains
    the alternative.
    Remedy: add up the losses of the replicas before updating the metric.
    Source: https://keras.io/guides/custom_train_step_in_tensorflow/
    Failure modes: keras3_train_step_loss
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        return with_remedy(compare.judge(case), _REMEDY, "reports the loss of one replica's share")

    yield from judge_cases(run, ("train-step-of-guide",), judge)
