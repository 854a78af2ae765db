from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Outcome, Severity, Unjudged
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._user_model import SCENARIO, model_of

_REMEDY = (
    "Create and compile the model inside the scope: with strategy.scope(): model = build_model(). Load saved models "
    "there, too."
)


@check(
    "job.model-in-scope",
    severity=Severity.ERROR,
    requires=["job.model-and-data"],
    scenario=SCENARIO,
    explained_by=NO_GPU,
)
def model_in_scope(run: SmokeRun) -> Iterator[Outcome]:
    """The model was created in the strategy's scope.

    Why: a model created outside trains on one device without an error, and the other GPUs are idle for the whole job.
    Remedy: create and compile the model inside with strategy.scope().
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    model = model_of(run)
    if isinstance(model, Unjudged):
        yield model
    elif model.made_in == "scope":
        yield evidence(f"model {model.name}", "created in the strategy's scope")
    else:
        where = "outside every strategy's scope" if model.made_in == "outside" else "in another strategy's scope"
        expected = "created in the scope of the strategy that trains it"
        yield finding(f"model {model.name}", f"created {where}", expected, _REMEDY)
