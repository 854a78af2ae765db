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

_DEFECT = defect("smoke.steps-per-execution")
_SUBJECT = "steps_per_execution"
_REMEDY = Remedy(
    summary="Compile with steps_per_execution=1, or train with tf_keras.", action=Action.CHANGE_CODE, look=_DEFECT.look
)


@check(
    "job.steps-per-execution",
    severity=Severity.ERROR,
    requires=["job.model-and-data"],
    scenario=SCENARIO,
    explained_by=NO_GPU,
)
def steps_per_execution(run: SmokeRun, matrix: VersionMatrix) -> Iterator[Outcome]:
    """The steps_per_execution of the job works on several replicas.

    Why: Keras 3 raises InvalidArgumentError in the first step if steps_per_execution is larger than 1 and there are
    several replicas. kdoctor trains copies of the model with the job's value, or with all steps of the preflight if
    that is less. If it trains nothing, the version matrix has what was measured with each release.
    Remedy: compile with steps_per_execution=1, or train with tf_keras.
    Source: https://keras.io/api/models/model_training_apis/
    Failure modes: keras3_steps_per_execution
    """
    model = model_of(run)
    if isinstance(model, Unjudged):
        yield model
    elif not model.compiled:
        yield NotApplicable(reason="the model is not compiled")
    elif model.steps_per_execution is None:
        yield unknown(_SUBJECT, "the model does not report it")
    elif model.steps_per_execution <= 1:
        yield evidence(_SUBJECT, "1")
    else:
        yield judge_feature(
            run,
            model,
            matrix,
            _DEFECT.features,
            option="steps_per_execution",
            subject=_SUBJECT,
            used=str(model.steps_per_execution),
            expected="1",
            remedy=_REMEDY,
            brief=_DEFECT.brief,
        )
