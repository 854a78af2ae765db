from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobModel

_REMEDY = (
    "Create and compile the model inside the scope: with strategy.scope(): model = build_model(). Load saved models "
    "there, too."
)


@job_check("job.model-in-scope", Severity.ERROR, "job.model-and-data")
def model_in_scope(model: JobModel) -> Outcome:
    """The model was created in the strategy's scope.

    Why: a model created outside trains on one device without an error, and the other GPUs are idle for the whole job.
    Remedy: create and compile the model inside with strategy.scope().
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    if model.made_in == "scope":
        return evidence(f"model {model.name}", "created in the strategy's scope")
    where = "outside every strategy's scope" if model.made_in == "outside" else "in another strategy's scope"
    expected = "created in the scope of the strategy that trains it"
    return finding(f"model {model.name}", f"created {where}", expected, _REMEDY)
