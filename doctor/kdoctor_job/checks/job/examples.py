from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import headline, job_check, job_of, remedy_for
from kdoctor_job.facts import JobTraining

_EXPECTED = "one epoch trains every example once"
_GENERATOR = "Use tf.data.Dataset.from_generator: fit takes batches of a generator without training them."
_OTHER = "Compare the metrics of one epoch with one device, and give fit a tf.data.Dataset or arrays."


@job_check("job.examples", Severity.ERROR, "job.trains", several=True)
def examples(run: SmokeRun, training: JobTraining) -> Outcome:
    """One epoch trains every example once.

    Why: on several replicas, fit can lose examples without an error. Keras 3 takes batches of a finite generator to
    build the model, and never trains them: of 8 batches, 4 to 6 remain. kdoctor gives fit the first batches of the data
    in the form in which the job has them, and counts the examples in train_step over all replicas.
    Remedy: give fit a tf.data.Dataset or arrays.
    Source: https://keras.io/api/models/model_training_apis/
    Failure modes: keras3_finite_generator
    """
    if training.examples_problem:
        problem = training.examples_problem
        return finding(
            "your data",
            f"fit on the data as it is raises {problem}",
            _EXPECTED,
            remedy_for(problem, "Run fit on it under the same strategy and fix the error it raises."),
            brief=headline(problem),
            explained_by=("job.final-batch",),
        )
    if training.examples_trained is None:
        return unknown("your data", training.examples_unread or "no epoch was trained on the data as it is")
    if training.examples is None:
        return NotApplicable(reason="the batches differ in size, so examples of two passes cannot be compared")
    if training.examples_trained == training.examples:
        return evidence(
            "your data", f"the first {counted(training.examples, 'example')} of an epoch, each trained once"
        )
    data = job_of(run).data
    is_generator = data is not None and data.kind == "generator"
    return finding(
        "your data",
        f"of the first {counted(training.examples, 'example')}, fit trained {training.examples_trained}",
        _EXPECTED,
        _GENERATOR if is_generator else _OTHER,
        brief=f"fit trains {training.examples_trained} of the first {counted(training.examples, 'example')}",
    )
