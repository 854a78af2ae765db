"""The pipeline makes batches faster than the replicas use them."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.job._job import SCENARIO, change, data_of, training_of


@check("job.input-bound", severity=Severity.INFO, requires=["job.trains"], scenario=SCENARIO)
def input_bound(run: SmokeRun) -> Iterator[Outcome]:
    """The pipeline makes batches faster than the replicas use them.

    Why: replicas that wait for data are paid for and idle; more of them make it no faster.
    Remedy: cache, read and map in parallel, decode beforehand; see what takes the time with the profiler.
    Source: https://www.tensorflow.org/guide/data_performance_analysis
    """
    data, training = data_of(run), training_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif isinstance(training, Unjudged):
        yield training
    elif data.seconds_per_batch is None or training.step_s is None:
        yield Unjudged(subject="pipeline", reason="a batch or a step was not timed: at least two of each are needed")
    else:
        observed = f"{data.seconds_per_batch:.3g} s for a batch alone, {training.step_s:.3g} s for a step"
        if data.seconds_per_batch < training.step_s:
            yield Evidence(subject="pipeline", observed=observed)
        else:
            yield change(
                "pipeline",
                observed,
                "less time for a batch than for a step",
                "Cache what is read again, map with num_parallel_calls=tf.data.AUTOTUNE, and decode beforehand.",
            )
