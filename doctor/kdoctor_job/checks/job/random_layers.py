from collections.abc import Iterator

from kdoctor.facts import SmokeRun
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks.smoke._judging import evidence, unknown
from kdoctor_checks.smoke._random_layers import DEFECT, REMEDY
from kdoctor_job.checks.job._keras_features import judge_feature
from kdoctor_job.checks.job._options import Judged
from kdoctor_job.checks.job._user_model import job_check, job_of, replicas_of
from kdoctor_job.facts import JobModel, JobTraining

_SUBJECT = "random layers"
_JUDGED = Judged(_SUBJECT, "different random numbers on each replica", REMEDY, DEFECT.brief)
_OF_STEP = "random numbers of a step"
_FROZEN = Judged(
    _OF_STEP,
    "other numbers in each step",
    "Draw with keras.random and a keras.random.SeedGenerator, or in the data. NumPy draws once, when a step is traced.",
    "are the same in every step",
)
_UNSEEN = "no copy of the model was trained"


@job_check("job.random-layers", Severity.WARNING, "job.model-and-data", several=True)
def random_layers(run: SmokeRun, model: JobModel, matrix: VersionMatrix) -> Iterator[Outcome]:
    """Layers with random numbers, and train_step, draw different ones on each replica.

    Why: in Keras 3 the generator of a layer is a mirrored variable, so every replica draws the same Dropout mask and
    the same augmentation. A batch on R replicas has 1/R of the random masks that it has on one device. This is a
    warning because the gradients are still correct; they vary more. tf_keras draws different numbers. kdoctor calls
    each layer on every replica with the same inputs. For a layer of Keras that cannot be called alone, the version
    matrix has what was measured with each release. For one of another class, the result is then unknown.
    Remedy: add the replica's index to the seed of the layer, or train with tf_keras.
    Source: https://keras.io/api/random/seed_generator/
    Failure modes: keras3_equal_masks
    """
    training = job_of(run).training
    layers = _drawing(model, training)
    if training and training.numpy_draws:
        yield _FROZEN.finding("NumPy draws when a step is traced: equal numbers in every step (measured here)")
    if layers is None:
        yield unknown(_SUBJECT, "the model is not built, so its layers are not known", ("job.trains",))
    elif layers:
        yield from _judge(run, model, matrix, layers, training or JobTraining(steps=0))
    elif training and training.draws_alike:
        on = counted(replicas_of(run), "replica")
        judged = _JUDGED._replace(subject=_OF_STEP)
        yield judged.finding(f"what a step draws on {on}: equal numbers on two of them (measured here)")
    else:
        yield evidence(_SUBJECT, "none")


def _drawing(model: JobModel, training: JobTraining | None) -> tuple[str, ...] | None:
    """The layers that draw random numbers; None if they are not known."""
    if training is None:
        return model.random_layers
    found = (*training.stilled, *training.equal_draws, *training.different_draws)
    if model.random_layers is not None:
        return tuple(dict.fromkeys((*model.random_layers, *found)))
    return tuple(dict.fromkeys(found)) if training.deviation is not None or training.own_losses else None


def _judge(
    run: SmokeRun, model: JobModel, matrix: VersionMatrix, layers: tuple[str, ...], training: JobTraining
) -> Iterator[Outcome]:
    equal, different = training.equal_draws, training.different_draws
    if equal:
        observed = f"{some(equal)} on {counted(replicas_of(run), 'replica')}: equal numbers on two of them "
        observed += "(measured here)"
        yield _JUDGED.finding(observed)
    if different:
        yield evidence(_SUBJECT, f"{some(different)}: different numbers on each replica (measured here)")
    rest = [name for name in layers if name not in (*equal, *different)]
    others = [name for name in rest if _is_unlisted(name, model, training)]
    for name in others:
        reason = training.undrawn.get(name) or training.not_run or _UNSEEN
        yield unknown(_SUBJECT, f"{name} was not measured: {reason}", ("job.options",))  # the model has no call
    rest = [name for name in rest if name not in others]
    if rest and not equal:
        yield judge_feature(run, model, matrix, DEFECT.features, option="", used=some(rest), judged=_JUDGED)


def _is_unlisted(name: str, model: JobModel, training: JobTraining) -> bool:
    """Whether the layer may be of a class about which the version matrix says nothing."""
    return name in model.own_random_layers or (model.random_layers is None and name in training.undrawn)
