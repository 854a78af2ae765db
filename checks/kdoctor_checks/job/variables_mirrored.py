"""Every trainable variable has a copy on each replica."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, NotApplicable, Outcome, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks.job._job import SCENARIO, change, model_of


@check("job.variables-mirrored", severity=Severity.ERROR, requires=["job.model-in-scope"], scenario=SCENARIO)
def variables_mirrored(run: SmokeRun) -> Iterator[Outcome]:
    """Every trainable variable has a copy on each replica.

    Why: a part that was made before the scope, such as a backbone at the head of a module, keeps its variables on
    one device.
    Remedy: make every layer of the model inside of the scope.
    Source: https://www.tensorflow.org/guide/distributed_training
    """
    model = model_of(run)
    if isinstance(model, Unjudged):
        yield model
    elif not model.built:
        yield NotApplicable(
            reason="the model is not built yet: fit makes its variables, in the scope that it was made in"
        )
    elif model.trainable == 0:
        yield Unjudged(subject=f"model {model.name}", reason="it has no trainable variables")
    elif model.mirrored == model.trainable:
        yield Evidence(
            subject=f"model {model.name}", observed=f"{model.mirrored} trainable variables, mirrored on each replica"
        )
    else:
        yield change(
            f"model {model.name}",
            f"{model.mirrored} of {model.trainable} trainable variables are mirrored; not so: "
            + some(model.not_mirrored),
            "each of them on every replica",
            "Make these layers inside of with strategy.scope(), where the model itself is made.",
        )
