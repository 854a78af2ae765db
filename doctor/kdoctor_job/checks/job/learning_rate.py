import math

from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobModel


@job_check("job.learning-rate", Severity.INFO, "job.model-and-data")
def learning_rate(model: JobModel, replicas: int) -> Outcome:
    """On several replicas, the learning rate is not the optimizer's default.

    Why: a global batch that grows with the replicas takes fewer steps per epoch, so the rate that suits one device is
    usually too small. How much to raise it depends on the job.
    Remedy: scale the rate with the batch and add a warm-up, or keep it on purpose.
    Source: https://arxiv.org/abs/1706.02677
    """
    if model.optimizer is None:
        return NotApplicable(reason="the model is not compiled, so it has no optimizer")
    if model.schedule:
        return evidence("learning rate", f"set by {model.schedule}")
    if model.learning_rate is None or model.default_learning_rate is None:
        return unknown("learning rate", f"{model.optimizer} does not report it")
    if replicas == 1 or not math.isclose(model.learning_rate, model.default_learning_rate, rel_tol=1e-5):
        return evidence("learning rate", f"{model.learning_rate:.4g} on {counted(replicas, 'replica')}")
    return finding(
        "learning rate",
        f"{model.learning_rate:.4g}, the default of {model.optimizer}, on {counted(replicas, 'replica')}",
        "a rate chosen for the global batch size",
        f"If {model.learning_rate:.4g} suits one device, try {model.learning_rate * replicas:.4g} with a warm-up.",
        brief=f"still the optimizer's default on {counted(replicas, 'replica')}",
    )
