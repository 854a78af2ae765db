import math
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import SCENARIO, model_of, replicas_of


@check(
    "job.learning-rate", severity=Severity.INFO, requires=["job.model-and-data"], scenario=SCENARIO, explained_by=NO_GPU
)
def learning_rate(run: SmokeRun) -> Iterator[Outcome]:
    """On several replicas, the learning rate is not the optimizer's default.

    Why: a global batch that grows with the replicas takes fewer steps per epoch, so the rate that suits one device is
    usually too small. How much to raise it depends on the job.
    Remedy: scale the rate with the batch and add a warm-up, or keep it on purpose.
    Source: https://arxiv.org/abs/1706.02677
    """
    model, replicas = model_of(run), replicas_of(run)
    if isinstance(model, Unjudged):
        yield model
    elif model.optimizer is None:
        yield NotApplicable(reason="the model is not compiled, so it has no optimizer")
    elif replicas is None:
        yield unknown("learning rate", "the number of replicas is not known")
    elif model.schedule:
        yield evidence("learning rate", f"set by {model.schedule}")
    elif model.learning_rate is None or model.default_learning_rate is None:
        yield unknown("learning rate", f"{model.optimizer} does not report it")
    elif replicas == 1 or not math.isclose(model.learning_rate, model.default_learning_rate, rel_tol=1e-5):
        yield evidence("learning rate", f"{model.learning_rate:.4g} on {counted(replicas, 'replica')}")
    else:
        yield finding(
            "learning rate",
            f"{model.learning_rate:.4g}, the default of {model.optimizer}, on {counted(replicas, 'replica')}",
            "a rate chosen for the global batch size",
            f"If {model.learning_rate:.4g} suits one device, try {model.learning_rate * replicas:.4g} with a warm-up.",
            brief=f"still the optimizer's default on {counted(replicas, 'replica')}",
        )
