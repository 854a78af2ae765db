from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import some
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._user_model import headline, job_check
from kdoctor_job.facts import JobData

_REMEDY = (
    "Pad ragged examples (padded_batch) or give them one length. If the dataset is empty, check its file "
    "pattern and filters."
)


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
        return finding("data", data.problem, expected, _REMEDY, brief=headline(data.problem))
    return evidence("data", f"{data.kind}, batches of {some([*map(str, data.parts)]) or data.batch}")
