from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._user_model import SCENARIO, model_of

_REMEDY = "Create the optimizer and call model.compile(...) inside with strategy.scope()."


@check(
    "job.optimizer-in-scope",
    severity=Severity.ERROR,
    requires=["job.model-in-scope"],
    scenario=SCENARIO,
    explained_by=NO_GPU,
)
def optimizer_in_scope(run: SmokeRun) -> Iterator[Outcome]:
    """The optimizer was created in the strategy's scope.

    Why: Keras 3 refuses to fit with an optimizer from outside the scope, and raises only when fit is called.
    Remedy: call compile, and create the optimizer, inside with strategy.scope().
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    model = model_of(run)
    if isinstance(model, Unjudged):
        yield model
    elif model.compiled_in is None:
        yield NotApplicable(reason="the model is not compiled, so it has no optimizer")
    elif model.compiled_in == "scope":
        yield evidence(f"optimizer {model.optimizer}", "created in the strategy's scope")
    else:
        where = "outside the strategy's scope" if model.compiled_in == "outside" else "in another strategy's scope"
        expected = "created in the same scope as the model"
        yield finding(f"optimizer {model.optimizer}", f"created {where}", expected, _REMEDY)
