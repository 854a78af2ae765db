from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import some
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._user_model import CHECK_THE_PATH, NO_FILE, headline, job_check, remedy_for
from kdoctor_job.facts import JobData

_RAGGED = "Pad ragged examples (padded_batch), or give them one length."
_FIXES = {
    NO_FILE: CHECK_THE_PATH,
    "different shapes": _RAGGED,
    "ragged": _RAGGED,
    "empty": "Check its file pattern and filters.",
    "number of examples": "Give inputs and targets the same number of examples.",
    "not batched": "Batch it: dataset.batch(size), with the size of a step on all replicas.",
}
"""What to do, by a part of the problem."""
_OTHERWISE = "Read it without a model, in the job's environment: for batch in data: pass"


@job_check("job.data-readable", Severity.ERROR, "job.model-and-data")
def data_readable(data: JobData) -> Outcome:
    """The data can be read, and its batches have one shape.

    Why: an empty dataset trains nothing without an error, and ragged elements stop the job at their batch.
    Remedy: give inputs and targets one length, pad ragged examples, and check the filter or file pattern of an empty
    dataset.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    if data.problem:
        expected = "batches of examples, all of one shape"
        fix = next((fix for part, fix in _FIXES.items() if part in data.problem), _OTHERWISE)
        return finding("data", data.problem, expected, remedy_for(data.problem, fix), brief=headline(data.problem))
    looked = f" ({data.seen} looked at)" if data.seen else ""
    return evidence("data", f"{data.kind}, batches of {some([*map(str, data.parts)]) or data.batch}{looked}")
