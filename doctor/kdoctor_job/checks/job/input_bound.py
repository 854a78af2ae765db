from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobData, JobTraining

_REMEDY = "Cache what is read again, map with num_parallel_calls=tf.data.AUTOTUNE, and decode in advance."


@job_check("job.input-bound", Severity.INFO, "job.trains")
def input_bound(data: JobData, training: JobTraining) -> Outcome:
    """The input pipeline is faster than the training steps.

    Why: replicas that wait for data are idle, and more of them do not make the job faster.
    Remedy: cache, read and map in parallel, decode in advance; find the slow part with the profiler.
    Source: https://www.tensorflow.org/guide/data_performance_analysis
    """
    if data.seconds_per_batch is None or training.step_s is None:
        return unknown("pipeline", "a batch or a step was not timed; at least two of each are needed")
    observed = f"{data.seconds_per_batch:.3g} s to produce a batch, {training.step_s:.3g} s per step"
    if data.seconds_per_batch < training.step_s:
        return evidence("pipeline", observed)
    brief = "producing a batch takes longer than a training step"
    return finding("pipeline", observed, "less time per batch than per step", _REMEDY, brief=brief)
