from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobModel

_REMEDY = "Create the optimizer and call model.compile(...) inside with strategy.scope()."


@job_check("job.optimizer-in-scope", Severity.ERROR, "job.model-in-scope")
def optimizer_in_scope(model: JobModel) -> Outcome:
    """The optimizer was created in the strategy's scope.

    Why: Keras 3 refuses to fit with an optimizer from outside the scope, and raises only when fit is called.
    Remedy: call compile, and create the optimizer, inside with strategy.scope().
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    if model.compiled_in is None:
        return NotApplicable(reason="the model is not compiled, so it has no optimizer")
    if model.compiled_in == "scope":
        return evidence(f"optimizer {model.optimizer}", "created in the strategy's scope")
    where = "outside the strategy's scope" if model.compiled_in == "outside" else "in another strategy's scope"
    expected = "created in the same scope as the model"
    return finding(f"optimizer {model.optimizer}", f"created {where}", expected, _REMEDY)
