"""Over all replicas the model learns what it learns on one device."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import JobTraining, SmokeRun
from kdoctor.model import Evidence, NotApplicable, Outcome, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks.job._job import SCENARIO, change, replicas_of, training_of


@check("job.equals-one-device", severity=Severity.ERROR, requires=["job.trains"], scenario=SCENARIO)
def equals_one_device(run: SmokeRun, *, tolerance: float = 0.05) -> Iterator[Outcome]:
    """Over all replicas the model learns what it learns on one device.

    Why: a loss function of one's own that returns the mean of its batch is R times too large over R replicas (Keras
    3 averages numbers for each example over the global batch, and adds up single numbers), and a train_step that
    forgets the replicas trains another model than was tested on one GPU. Compared are copies with SGD, whose steps
    are proportional to the gradient; layers with random numbers run as at inference, and BatchNormalization takes
    the moments of the whole batch. Rounding gives 1e-6 of the way that the weights went, a mean over two replicas
    1.
    Remedy: return one number for each example from a loss function, and leave the reduction to Keras.
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
            "Let a loss function return one number for each example, not their mean: Keras 3 averages those over the "
            "global batch, but takes a single number as it is, and adds it up over the replicas. In a train_step of "
            "your own, call self.compute_loss, or divide the sum by the global batch.",
        )


def _words(training: JobTraining) -> str:
    stilled = f" (at inference: {some(training.stilled)})" if training.stilled else ""
    apart = f"{training.deviation:.2g} of their way apart from one device's"
    return f"after {training.steps} steps weights are {apart}{stilled}"
