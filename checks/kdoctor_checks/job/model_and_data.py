"""The job's model and data can be made."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.job._job import SCENARIO, case_of, change, job_of
from kdoctor_checks.smoke._cases import how_it_ended

_EXPECTED = {
    "model": "a function without arguments that returns a Keras model",
    "data": "a function without arguments that returns a dataset, a PyDataset, arrays or a generator",
}
_ADVICE = "Mend what the message names, and try the function by hand in the same environment and folder."


@check("job.model-and-data", severity=Severity.ERROR, requires=["versions.tensorflow-installed"], scenario=SCENARIO)
def model_and_data(run: SmokeRun) -> Iterator[Outcome]:
    """The job's model and data can be made.

    Why: what cannot be made cannot be trained; a function that raises, hangs or returns something else does so after
    the queue's wait, too.
    Remedy: follow the message; both functions are called without arguments, in the strategy's scope, from the working
    folder.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    case = case_of(run)
    if isinstance(case, Unjudged):
        yield case
        return
    job = job_of(run)
    if job.problem:
        yield change(job.problem.part, job.problem.message, _EXPECTED[job.problem.part], _ADVICE)
    elif job.model and job.data:
        yield Evidence(subject="model", observed=f"{job.model.name}")
        yield Evidence(subject="data", observed=job.data.kind)
    elif case.outcome == "trained":
        yield Unjudged(
            subject="job", reason="no model was named: kdoctor check --model package.module:function --data ..."
        )
    else:
        part = case.phase if case.phase in _EXPECTED else "job"
        yield change(part, f"making it: {how_it_ended(case)}", _EXPECTED.get(part, "it is made"), _ADVICE)
