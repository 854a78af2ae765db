from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, NotApplicable, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_checks._causes import of_weights
from kdoctor_checks.job._user_model import SCENARIO, replicas_of, training_of
from kdoctor_checks.smoke._judging import finding, unknown

_REMEDY = (
    "Return one number per example from the loss function, not their mean. In a custom train_step, call "
    "self.compute_loss."
)


@check("job.equals-one-device", severity=Severity.ERROR, requires=["job.trains"], scenario=SCENARIO)
def equals_one_device(run: SmokeRun, *, tolerance: float = 0.05) -> Iterator[Outcome]:
    """The model trained on all replicas matches one device.

    Why: a custom loss function that returns the mean of its batch is R times too large on R replicas. Keras 3 averages
    numbers per example over the global batch, but adds up single numbers. A train_step that ignores the replicas trains
    something else than was tested on one GPU. kdoctor compares copies of the model trained with SGD, whose steps are
    proportional to the gradient. Random layers run in inference mode, and BatchNormalization uses the moments of the
    whole batch. The relative difference is 1e-6 for rounding, and 1 for a mean on two replicas.
    Remedy: return one number per example from the loss function, and leave the reduction to Keras.
    Source: https://www.tensorflow.org/tutorials/distribute/custom_training
    """
    training, replicas = training_of(run), replicas_of(run)
    if isinstance(training, Unjudged):
        yield training
        return
    if replicas == 1:
        yield NotApplicable(reason="the job has only one replica")
        return
    if training.not_compared or training.deviation is None:
        yield unknown("training", f"not compared with one device: {training.not_compared or 'not finite'}")
        return
    difference = f"(relative difference {training.deviation:.2g} after {counted(training.steps, 'step')}"
    difference += f"; in inference mode: {some(training.stilled)})" if training.stilled else ")"
    if training.deviation <= tolerance:
        brief = f"your model on {counted(replicas or 0, 'replica')} equals one device (within {training.deviation:.0e})"
        yield Evidence(subject="training", observed=f"weights match one device's {difference}", brief=brief)
    elif training.noise is not None and not training.noise <= tolerance:
        yield unknown(
            "training",
            f"two trainings on one device differ by {training.noise:.2g} as well, because of random numbers that do "
            "not come from a Keras layer",
        )
    else:
        yield finding(
            "your model",
            f"weights differ from one device's {difference}",
            f"at most {tolerance:g}",
            _REMEDY,
            brief="weights differ from one device's",
            explained_by=of_weights(run),
        )
