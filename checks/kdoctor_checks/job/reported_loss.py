"""The loss that fit reports is that of one device."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks.job._job import SCENARIO, change, replicas_of, training_of
from kdoctor_checks.smoke._cases import show


@check("job.reported-loss", severity=Severity.INFO, requires=["job.equals-one-device"], scenario=SCENARIO)
def reported_loss(run: SmokeRun, *, tolerance: float = 0.01) -> Iterator[Outcome]:
    """The loss that fit reports is that of one device.

    Why: Keras 3 divides a replica's loss by the number of replicas before the gradients are summed; a train_step of
    one's own that reports it as it is shows a loss that is too small by that factor, though the weights are
    right.
    Remedy: report the loss multiplied by the number of replicas.
    Source: https://github.com/keras-team/keras/blob/master/keras/src/backend/tensorflow/trainer.py
    """
    training, replicas = training_of(run), replicas_of(run)
    if isinstance(training, Unjudged):
        yield training
    elif replicas == 1:
        yield NotApplicable(reason="there is one replica")
    elif training.not_compared or len(training.losses) != len(training.reference_losses) or not training.losses:
        yield Unjudged(subject="loss", reason="it was not compared with one device")
    elif all(
        one is not None and other is not None and math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance / 10)
        for one, other in zip(training.losses, training.reference_losses, strict=True)
    ):
        yield Evidence(subject="loss", observed=f"{show(training.losses)}, as on one device")
    else:
        yield change(
            "loss",
            f"{show(training.losses)}; on one device {show(training.reference_losses)}",
            "the same",
            "In a train_step of your own, report the loss times tf.distribute.get_strategy().num_replicas_in_sync.",
        )
