from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobTraining

_REMEDY = "Let the loss depend on them, without stop_gradient or argmax between, or set trainable = False."


@job_check("job.all-trained", Severity.WARNING, "job.trains")
def all_trained(training: JobTraining) -> Outcome:
    """The first steps change every trainable variable.

    Why: a variable without a gradient keeps its first value for the whole job. Keras warns once, in a long log, or not
    at all where the gradient is zero.
    Remedy: let the loss depend on it, or set trainable = False on purpose.
    Source: https://www.tensorflow.org/guide/autodiff#getting_a_gradient_of_none
    """
    steps = counted(training.steps, "step")
    if training.unmoved is None:
        return unknown("your model", f"its optimizer may not have updated a variable in {steps}")
    if not training.unmoved:
        return evidence("your model", f"{steps} changed every trainable variable")
    observed = f"{steps} did not change {counted(len(training.unmoved), 'variable')}: {some(training.unmoved)}"
    return finding("your model", observed, "a change", _REMEDY, brief=f"no step changes {some(training.unmoved, 1)}")
