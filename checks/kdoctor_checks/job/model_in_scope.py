"""The model was made in the strategy's scope."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.job._job import SCENARIO, change, model_of


@check("job.model-in-scope", severity=Severity.ERROR, requires=["job.model-and-data"], scenario=SCENARIO)
def model_in_scope(run: SmokeRun) -> Iterator[Outcome]:
    """The model was made in the strategy's scope.

    Why: a model that is made outside trains on one device, and Keras says nothing: the other GPUs are idle for the
    whole job.
    Remedy: make and compile the model inside of with strategy.scope().
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    model = model_of(run)
    if isinstance(model, Unjudged):
        yield model
    elif model.made_in == "scope":
        yield Evidence(subject=f"model {model.name}", observed="made in the scope of the strategy")
    else:
        where = "outside of every strategy's scope" if model.made_in == "outside" else "in another strategy's scope"
        yield change(
            f"model {model.name}",
            f"made {where}",
            "made in the scope of the strategy that trains it",
            "Make and compile the model inside of the scope: with strategy.scope(): model = build_model(). A model "
            "that is loaded must be loaded there, too.",
        )
