"""The model was compiled in the strategy's scope."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks.job._job import SCENARIO, change, model_of


@check("job.optimizer-in-scope", severity=Severity.ERROR, requires=["job.model-in-scope"], scenario=SCENARIO)
def optimizer_in_scope(run: SmokeRun) -> Iterator[Outcome]:
    """The model was compiled in the strategy's scope.

    Why: Keras 3 refuses to fit with an optimizer from outside of the scope, and that only when fit is called.
    Remedy: call compile, and make the optimizer, inside of with strategy.scope().
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    model = model_of(run)
    if isinstance(model, Unjudged):
        yield model
    elif model.compiled_in is None:
        yield NotApplicable(reason="the model has no optimizer: it is not compiled")
    elif model.compiled_in == "scope":
        yield Evidence(subject=f"optimizer {model.optimizer}", observed="made in the scope of the strategy")
    else:
        yield change(
            f"optimizer {model.optimizer}",
            "made outside of the strategy's scope"
            if model.compiled_in == "outside"
            else "made in another strategy's scope",
            "made in the scope that the model was made in",
            "Make the optimizer and call model.compile(...) inside of with strategy.scope().",
        )
