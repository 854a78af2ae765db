"""The data has batches, and each is of one shape."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.job._job import SCENARIO, change, data_of

_ADVICE = (
    "Read one element by hand (next(iter(dataset))). Pad ragged examples (padded_batch) or give them one length; for "
    "an empty dataset, look at its file pattern and filters."
)


@check("job.data-readable", severity=Severity.ERROR, requires=["job.model-and-data"], scenario=SCENARIO)
def data_readable(run: SmokeRun) -> Iterator[Outcome]:
    """The data has batches, and each is of one shape.

    Why: an empty dataset trains nothing without a word of why, and ragged elements stop the job at the batch that
    holds them.
    Remedy: make inputs and targets of one length, pad what is ragged, and look for the filter or the pattern that
    leaves nothing.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    data = data_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif data.problem:
        yield change("data", data.problem, "batches of examples, all of one shape", _ADVICE)
    else:
        yield Evidence(subject="data", observed=f"{data.kind}, batches of {data.batch}")
