from kdoctor.defects import defect
from kdoctor.facts import SmokeRun
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import NotApplicable, Outcome, Remedy, Severity
from kdoctor_checks.smoke._judging import evidence, unknown
from kdoctor_job.checks.job._keras_features import judge_feature
from kdoctor_job.checks.job._options import Judged
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobModel

_DEFECT = defect("smoke.clipping")
_MEASURED = (*_DEFECT.features, *defect("smoke.clipping-options").features)
_FEATURES = {feature.rpartition("/")[2].replace("-", "_"): feature for feature in _MEASURED}
_REMEDY = Remedy.change_code(
    "Remove the option, and clip in train_step after adding up the gradients of the replicas.", look=_DEFECT.look
)


@job_check("job.clipping", Severity.ERROR, "job.model-and-data", several=True)
def clipping(run: SmokeRun, model: JobModel, matrix: VersionMatrix) -> Outcome:
    """The optimizer clips gradients as on one device, or not at all.

    Why: Keras 3 clips the gradient of each replica and then adds them up, so every replica's share of the global
    gradient is compared with the whole limit. The job trains without an error, with larger steps than on one device.
    tf_keras adds up first. kdoctor trains the job with and without its clipping, on the replicas and on one device. If
    no gradient reaches the limit in these steps, the version matrix has what was measured with each release.
    Remedy: clip in a custom train_step after an all_reduce of the gradients, or train with tf_keras.
    Source: https://keras.io/api/optimizers/
    Failure modes: keras3_clips_each_replica
    """
    subject = f"optimizer {model.optimizer}"
    if model.optimizer is None:
        return NotApplicable(reason="the model is not compiled, so it has no optimizer")
    if model.clipping is None:
        return unknown(subject, "it does not report whether it clips gradients")
    if not model.clipping:
        return evidence(subject, "does not clip gradients")
    return judge_feature(
        run,
        model,
        matrix,
        [_FEATURES[option.partition("=")[0]] for option in model.clipping],
        option="clipping",
        used=", ".join(model.clipping),
        judged=Judged(subject, "the clipping of one device", _REMEDY, _DEFECT.brief),
    )
