"""The learning rate was chosen for this number of replicas."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks.job._job import SCENARIO, change, model_of, replicas_of


@check("job.learning-rate", severity=Severity.INFO, requires=["job.model-and-data"], scenario=SCENARIO)
def learning_rate(run: SmokeRun) -> Iterator[Outcome]:
    """The learning rate was chosen for this number of replicas.

    Why: a global batch that grows with the replicas takes fewer steps an epoch; the rate that suited one device is
    then usually too small. How much to raise it, the job knows.
    Remedy: scale the rate with the batch, and warm it up; or decide that it stays.
    Source: https://arxiv.org/abs/1706.02677
    """
    model, replicas = model_of(run), replicas_of(run)
    if isinstance(model, Unjudged):
        yield model
    elif model.optimizer is None:
        yield NotApplicable(reason="the model has no optimizer: it is not compiled")
    elif replicas is None:
        yield Unjudged(subject="learning rate", reason="the number of replicas is not known")
    elif model.schedule:
        yield Evidence(subject="learning rate", observed=f"set by {model.schedule}")
    elif model.learning_rate is None or model.default_learning_rate is None:
        yield Unjudged(subject="learning rate", reason=f"{model.optimizer} does not say it")
    elif replicas == 1 or not math.isclose(model.learning_rate, model.default_learning_rate, rel_tol=1e-5):
        yield Evidence(subject="learning rate", observed=f"{model.learning_rate:.4g} over {replicas} replicas")
    else:
        yield change(
            "learning rate",
            f"{model.learning_rate:.4g}, the default of {model.optimizer}, over {replicas} replicas",
            "a rate that was chosen for the global batch",
            f"If {model.learning_rate:.4g} suits one device, try {model.learning_rate * replicas:.4g} with a warm-up.",
        )
