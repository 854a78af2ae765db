"""Over all replicas the model learns what it learns on one device."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import JobTraining, SmokeRun
from kdoctor.model import Evidence, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks.job._job import SCENARIO, change, replicas_of, training_of
from kdoctor_checks.smoke._cases import some


@check("job.equals-one-device", severity=Severity.ERROR, requires=["job.trains"], scenario=SCENARIO)
def equals_one_device(run: SmokeRun, *, tolerance: float = 0.05) -> Iterator[Outcome]:
    """Over all replicas the model learns what it learns on one device.

    Why: a loss that is summed where it should be averaged, or a train_step that forgets the replicas, trains another
    model than was tested on one GPU. Compared are copies with SGD, whose steps are proportional to the
    gradient; layers with random numbers run as at inference, and BatchNormalization takes the moments of the
    whole batch. Rounding gives 1e-6 of the way that the weights went, gradients that are summed over two
    replicas 1.
    Remedy: average the loss over the global batch, not over a replica's share; leave the reduction to Keras where you
    can.
    Source: https://www.tensorflow.org/tutorials/distribute/custom_training
    """
    training, replicas = training_of(run), replicas_of(run)
    if isinstance(training, Unjudged):
        yield training
    elif replicas == 1:
        yield NotApplicable(reason="there is one replica")
    elif training.not_compared or training.deviation is None:
        yield Unjudged(
            subject="training", reason=f"not compared with one device: {training.not_compared or 'not finite'}"
        )
    elif training.deviation <= tolerance:
        yield Evidence(subject="training", observed=_words(training))
    elif training.noise is not None and not training.noise <= tolerance:
        yield Unjudged(
            subject="training",
            reason=f"two trainings on one device differ by {training.noise:.2g}, too: random numbers that no layer of "
            "Keras draws make a comparison impossible",
        )
    else:
        yield change(
            "training",
            _words(training),
            f"at most {tolerance:g}",
            "Average the loss over the global batch (keras.losses with the default reduction do), and let Keras reduce "
            "the gradients: see what the model's own train_step or loss does with a part of the batch.",
        )


def _words(training: JobTraining) -> str:
    stilled = f" (at inference: {some(training.stilled)})" if training.stilled else ""
    apart = f"{training.deviation:.2g} of their way apart from one device's"
    return f"after {training.steps} steps weights are {apart}{stilled}"
