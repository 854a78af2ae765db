from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobModel

_REMEDY = "Create these layers inside with strategy.scope(), like the model itself."


@job_check("job.variables-mirrored", Severity.ERROR, "job.model-in-scope")
def variables_mirrored(model: JobModel) -> Outcome:
    """Every trainable variable is mirrored on every replica.

    Why: a part created before the scope, such as a backbone at the top of a module, keeps its variables on one device.
    Remedy: create every layer of the model inside the scope.
    Source: https://www.tensorflow.org/guide/distributed_training
    """
    subject, count = (
        f"model {model.name}",
        f"{model.mirrored} of {counted(model.trainable, 'trainable variable')} mirrored",
    )
    if not model.built:
        return NotApplicable(reason="the model is not built; fit creates its variables in the model's scope")
    if model.trainable == 0:
        return unknown(subject, "it has no trainable variables")
    if model.mirrored == model.trainable:
        return evidence(subject, f"{count} on every replica")
    observed = f"{count} on every replica, not {some(model.not_mirrored)}"
    brief = "some variables are on one device only"
    return finding(subject, observed, "all of them on every replica", _REMEDY, brief=brief)
