from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Outcome, Severity, Unjudged
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import SCENARIO, data_of, training_of

_REMEDY = "Cache what is read again, map with num_parallel_calls=tf.data.AUTOTUNE, and decode in advance."


@check("job.input-bound", severity=Severity.INFO, requires=["job.trains"], scenario=SCENARIO, explained_by=NO_GPU)
def input_bound(run: SmokeRun) -> Iterator[Outcome]:
    """The input pipeline is faster than the training steps.

    Why: replicas that wait for data are idle, and more of them do not make the job faster.
    Remedy: cache, read and map in parallel, decode in advance; find the slow part with the profiler.
    Source: https://www.tensorflow.org/guide/data_performance_analysis
    """
    data, training = data_of(run), training_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif isinstance(training, Unjudged):
        yield training
    elif data.seconds_per_batch is None or training.step_s is None:
        yield unknown("pipeline", "a batch or a step was not timed; at least two of each are needed")
    else:
        observed = f"{data.seconds_per_batch:.3g} s to produce a batch, {training.step_s:.3g} s per step"
        if data.seconds_per_batch < training.step_s:
            yield evidence("pipeline", observed)
        else:
            brief = "producing a batch takes longer than a training step"
            yield finding("pipeline", observed, "less time per batch than per step", _REMEDY, brief=brief)
