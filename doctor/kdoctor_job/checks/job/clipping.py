from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.defects import defect
from kdoctor.facts import SmokeRun
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Action, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import evidence, unknown
from kdoctor_job.checks.job._keras_features import judge_feature
from kdoctor_job.checks.job._user_model import SCENARIO, model_of

_DEFECT = defect("smoke.clipping")
_MEASURED = (*_DEFECT.features, *defect("smoke.clipping-options").features)
_FEATURES = {feature.rpartition("/")[2].replace("-", "_"): feature for feature in _MEASURED}
_REMEDY = Remedy(
    summary="Remove the option, and clip in train_step after adding up the gradients of the replicas.",
    action=Action.CHANGE_CODE,
    look=_DEFECT.look,
)


@check("job.clipping", severity=Severity.ERROR, requires=["job.model-and-data"], scenario=SCENARIO, explained_by=NO_GPU)
def clipping(run: SmokeRun, matrix: VersionMatrix) -> Iterator[Outcome]:
    """The optimizer clips gradients as on one device, or not at all.

    Why: Keras 3 clips the gradient of each replica and then adds them up, so every replica's share of the global
    gradient is compared with the whole limit. The job trains without an error, with larger steps than on one device.
    tf_keras adds up first. kdoctor trains the job with and without its clipping, on the replicas and on one device. If
    no gradient reaches the limit in these steps, the version matrix has what was measured with each release.
    Remedy: clip in a custom train_step after an all_reduce of the gradients, or train with tf_keras.
    Source: https://keras.io/api/optimizers/
    Failure modes: keras3_clips_each_replica
    """
    model = model_of(run)
    if isinstance(model, Unjudged):
        yield model
        return
    subject = f"optimizer {model.optimizer}"
    if model.optimizer is None:
        yield NotApplicable(reason="the model is not compiled, so it has no optimizer")
    elif model.clipping is None:
        yield unknown(subject, "it does not report whether it clips gradients")
    elif not model.clipping:
        yield evidence(subject, "does not clip gradients")
    else:
        yield judge_feature(
            run,
            model,
            matrix,
            [_FEATURES[option.partition("=")[0]] for option in model.clipping],
            option="clipping",
            subject=subject,
            used=", ".join(model.clipping),
            expected="the clipping of one device",
            remedy=_REMEDY,
            brief=_DEFECT.brief,
        )
