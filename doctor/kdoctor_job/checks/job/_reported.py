"""Compares numbers with those of one device: what ``fit`` and ``evaluate`` report, and how much weights differ."""

from collections.abc import Mapping, Sequence

from kdoctor.facts import SmokeRun
from kdoctor_checks._causes import of_losses
from kdoctor_checks.smoke._cases import format_losses
from kdoctor_job.checks.job._options import MOSTLY, TOLERANCE
from kdoctor_job.facts import JobTraining, Logs

_BEYOND_ROUNDING = 10.0
"""A difference of at most this many times that of another order of the examples is explained by rounding."""


RANDOM = "random numbers change the weights of one device as much as several replicas do"
"""Why a difference of reported numbers shows nothing, see :func:`is_random`."""


_OF_WHOLE_BATCH = {
    "outputs": (
        "the outputs of an example depend on the others of its batch",
        "Compute the outputs of an example from it alone: sums over the first axis are those of a replica.",
    ),
    "layers": (
        "what layers add to the loss is not a mean over the examples",
        "Let add_loss get a mean of one number per example, and an activity_regularizer return the sum of them.",
    ),
    "loss": (
        "the loss of a batch does not follow from those of its shares",
        (
            "Return one number per example, computed from it alone. Add up counts of the batch with the replica "
            "context's all_reduce, and get the examples for pairs with all_gather."
        ),
    ),
    "step": (
        "what train_step does with a batch does not follow from its shares",
        "Gather with tf.distribute.get_replica_context().all_gather what train_step computes from several examples.",
    ),
}
"""What of the job is computed from a whole batch, and what to write instead."""


def of_cause(training: JobTraining, remedy: str) -> tuple[str, str]:
    """The fix of a difference from one device, and what follows its description: its cause, if that is known."""
    if training.of_whole_batch is None:
        return remedy, ""
    cause, fix = _OF_WHOLE_BATCH[training.of_whole_batch]
    return fix, f": {cause}"


def is_noise(difference: float, noise: float | None) -> bool:
    """Whether another order of the examples on one device explains a difference; not if that was not measured."""
    return noise is not None and not difference > _BEYOND_ROUNDING * noise


def is_random(training: JobTraining) -> bool:
    """Whether random numbers that are drawn in the comparisons, or rounding, explain why the weights differ."""
    if training.own is not None and training.own.rounded_share > MOSTLY:
        return True
    deviation = training.deviation
    return deviation is not None and deviation > TOLERANCE and is_noise(deviation, training.noise)


def differences(logs: Logs, reference: Logs, reordered: Logs, tolerance: float) -> list[str]:
    """The numbers that differ from one device's: ``accuracy is 0.5 instead of 0.25``."""
    return [
        f"{name} is {_written(logs, name)} instead of {_written(reference, name)}"
        for name in {**reference, **logs}
        if not _match(logs.get(name), reference.get(name), reordered.get(name), tolerance)
    ]


def of_evaluation(run: SmokeRun, wrong: Sequence[str]) -> tuple[str, ...]:
    """The checks that explain what evaluate reports. A loss that is wrong also changes the weights."""
    only_loss = bool(wrong) and all(text.startswith(("loss is ", "val_loss is ")) for text in wrong)
    return (*of_losses(run), *(("job.equals-one-device",) if only_loss else ()))


def _match(one: float | None, other: float | None, noisy: float | None, tolerance: float) -> bool:
    if one is None or other is None:
        return one is other
    difference = abs(one - other)
    if difference <= max(tolerance * max(abs(one), abs(other)), tolerance / 10):
        return True
    return noisy is not None and is_noise(difference, abs(other - noisy))


def _written(logs: Mapping[str, float | None], name: str) -> str:
    return format_losses((logs[name],)) if name in logs else "not reported"
