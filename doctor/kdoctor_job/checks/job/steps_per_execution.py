from kdoctor.defects import defect
from kdoctor.facts import SmokeRun
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import NotApplicable, Outcome, Remedy, Severity
from kdoctor_checks.smoke._judging import evidence, unknown
from kdoctor_job.checks.job._keras_features import judge_feature
from kdoctor_job.checks.job._options import Judged
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobModel

_DEFECT = defect("smoke.steps-per-execution")
_SUBJECT = "steps_per_execution"
_REMEDY = Remedy.change_code("Compile with steps_per_execution=1, or train with tf_keras.", look=_DEFECT.look)


@job_check("job.steps-per-execution", Severity.ERROR, "job.model-and-data", several=True)
def steps_per_execution(run: SmokeRun, model: JobModel, matrix: VersionMatrix) -> Outcome:
    """The steps_per_execution of the job works on several replicas.

    Why: Keras 3 raises InvalidArgumentError in the first step if steps_per_execution is larger than 1 and there are
    several replicas. kdoctor trains copies of the model with the job's value, or with all steps of the preflight if
    that is less. If it trains nothing, the version matrix has what was measured with each release.
    Remedy: compile with steps_per_execution=1, or train with tf_keras.
    Source: https://keras.io/api/models/model_training_apis/
    Failure modes: keras3_steps_per_execution
    """
    if not model.compiled:
        return NotApplicable(reason="the model is not compiled")
    if model.steps_per_execution is None:
        return unknown(_SUBJECT, "the model does not report it")
    if model.steps_per_execution <= 1:
        return evidence(_SUBJECT, "1")
    judged, used = Judged(_SUBJECT, "1", _REMEDY, _DEFECT.brief), str(model.steps_per_execution)
    return judge_feature(run, model, matrix, _DEFECT.features, option="steps_per_execution", used=used, judged=judged)
