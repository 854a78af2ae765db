from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Outcome, Severity, Unjudged
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks._versions import first_short
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._user_model import SCENARIO, data_of

_REMEDY = (
    "Pad ragged examples (padded_batch) or give them one length. If the dataset is empty, check its file "
    "pattern and filters."
)


@check(
    "job.data-readable",
    severity=Severity.ERROR,
    requires=["job.model-and-data"],
    scenario=SCENARIO,
    explained_by=NO_GPU,
)
def data_readable(run: SmokeRun) -> Iterator[Outcome]:
    """The data can be read, and its batches have one shape.

    Why: an empty dataset trains nothing without an error, and ragged elements stop the job at their batch.
    Remedy: give inputs and targets one length, pad ragged examples, and check the filter or file pattern of an empty
    dataset.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    data = data_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif data.problem:
        brief = first_short(data.problem, "cannot be read as batches of one shape")
        yield finding("data", data.problem, "batches of examples, all of one shape", _REMEDY, brief=brief)
    else:
        yield evidence("data", f"{data.kind}, batches of {data.batch}")
