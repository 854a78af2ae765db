from collections.abc import Iterator

from kdoctor.facts import SmokeCase
from kdoctor.model import Evidence, Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._reported import is_noise
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobStep

_EXAMPLES, _GRADIENTS, _WEIGHTS = "examples of the loop", "gradients of the loop", "weights of the loop"
_STRETCHED = 0.25
"""Two replicas make the gradients twice as long, or half as long, if the loss is divided by another number."""
_TOO_LONG = (
    "Divide the loss by the global batch size (tf.nn.compute_average_loss) and model.losses by the replicas. Clip only "
    "the sum of all replicas."
)
_SUMMED_TWICE = "Leave out the all_reduce of the gradients: the optimizer adds them up over the replicas, too."
_TOO_SHORT = "Divide the loss once: Keras divides a loss by the replicas in their scope, unless its reduction is None."
_OTHER = "Divide what is not a sum over examples by the replicas: tf.nn.scale_regularization_loss(sum(model.losses))."
_DISTRIBUTE = "Give strategy.run batches of strategy.experimental_distribute_dataset(dataset)."
_USE_FIT = "Use fit, or strategy.run with batches of strategy.experimental_distribute_dataset(dataset)."
_REMEDIES = {
    "differ between the replicas": "Make the optimizer in strategy.scope(), and let only it assign weights.",
    "hold NaN or infinity": "Look for a logarithm or division without a floor, and for NaN in the data.",
}


@job_check("job.first-step", Severity.ERROR, "job.model-and-data")
def first_step(case: SmokeCase, step: JobStep, *, tolerance: float = 0.05) -> Iterator[Outcome]:
    """The first step of the script's training loop on all replicas is that of one device.

    Why: a loop of strategy.run is wrong without an error if every replica gets the whole batch, if its optimizer was
    made outside the scope, or if its loss is the mean of a replica's examples: the optimizer adds up gradients, so they
    are R times too large on R replicas. The script runs until a step has updated variables. Then another process runs
    it with one replica on the CPU, where the function of that step gets the same examples, and the gradients that the
    optimizer gets are compared. With one replica, a script may have a smaller batch: then the mean over its batches
    counts. The relative difference is 1e-7 for rounding, and 1 for a mean on two replicas. A variable that only one of
    several losses reaches is compared by itself, too. What a step takes after an update, as that of a GAN does, one
    device takes with the updated weights of the replicas. Later steps, evaluation and saving are not examined.
    Remedy: distribute the dataset, and divide the loss by the global batch size.
    Source: https://www.tensorflow.org/tutorials/distribute/custom_training
    """
    if step.alike:
        remedy = _USE_FIT if step.of_keras else _DISTRIBUTE
        observed = f"{step.name} gets the same on every replica, so that all do the same work"
        brief = "every replica trains the same batch"
        yield finding(_EXAMPLES, observed, "each replica trains other examples", remedy, brief=brief)
    elif step.rows:
        yield evidence(_EXAMPLES, f"{step.name} gets {' + '.join(map(str, step.rows))} of them")
        yield _gradients(step, counted(case.replicas or 0, "replica"), tolerance)
    else:
        yield unknown(_EXAMPLES, f"{step.name} gets {step.unseen or 'no batch'}, so that they are not seen")
    wrong = dict(zip(_REMEDIES, (step.different, step.nonfinite), strict=True))
    for what, names in wrong.items():
        if names:
            brief = f"they {what} after the first step"
            observed = f"{some(names)} {what} after the first step"
            yield finding(_WEIGHTS, observed, "finite, and the same on every replica", _REMEDIES[what], brief=brief)
    if step.updated and not any(wrong.values()):
        yield evidence(_WEIGHTS, f"{counted(step.updated, 'variable')} updated, finite and the same on every replica")


def _gradients(step: JobStep, replicas: str, tolerance: float) -> Outcome:
    if step.not_compared or step.stretch is None or step.deviation is None:
        return unknown(_GRADIENTS, f"not compared with one device: {step.not_compared or 'they are not finite'}")
    turned = min((one for one in (step.of_shares, step.of_whole) if one is not None), default=0.0)
    apart, stretched = min(step.deviation, turned), abs(step.stretch - 1)
    others, remedy = [one for one in step.stretches if abs(one - 1) > _STRETCHED], ""
    is_other = stretched > _STRETCHED and (step.stretch > 1 or turned < _STRETCHED)
    if is_other and not is_noise(stretched, step.stretch_noise):
        brief = f"they are {step.stretch:.2g} times those of one device"
        remedy = _too_long(step) if step.stretch > 1 else _TOO_SHORT
    elif others:
        of = f"those of {len(others)} of {counted(step.updated, 'variable')}"
        brief, remedy = (
            f"{of} are {others[0]:.2g} times those of one device",
            _too_long(step) if others[0] > 1 else _TOO_SHORT,
        )
    elif apart > tolerance and not is_noise(apart, step.noise):
        brief, remedy = f"they differ from those of one device by {apart:.2g}", _OTHER
    if remedy:
        expected = "those of one device with the same examples"
        return finding(_GRADIENTS, f"{brief} ({step.name})", expected, remedy, brief=brief)
    if apart <= tolerance:
        brief = f"the first step of your loop equals one device's ({replicas}, within {max(apart, 1e-7):.0e})"
        batches = "" if step.deviation <= tolerance else ", up to how examples are put together in batches"
        return Evidence(subject=_GRADIENTS, observed=f"{brief}{batches}", brief=brief)
    random = f"random numbers change those of one device by {step.noise or 0.0:.2g} as well"
    if max(stretched, step.stretch_noise or 0.0) > _STRETCHED:
        return unknown(_GRADIENTS, random)
    brief = f"the first step of your loop is as long as one device's ({replicas})"
    return Evidence(subject=_GRADIENTS, observed=f"{brief}; {random}", brief=brief)


def _too_long(step: JobStep) -> str:
    return _SUMMED_TWICE if step.sums > 1 else _TOO_LONG
