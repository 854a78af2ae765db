from collections.abc import Iterator

from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobTraining

_REMEDY = "Use a smaller per-replica batch size, or mixed precision."


@job_check("job.memory-headroom", Severity.WARNING, "job.trains")
def memory_headroom(run: SmokeRun, training: JobTraining, *, most_used: float = 0.9) -> Iterator[Outcome]:
    """GPUs have memory to spare at this batch size.

    Why: a job that fills the memory fails at the first slightly larger batch, or when another process starts. kdoctor's
    steps measure the peak of training, not of validation or saving.
    Remedy: use a smaller per-replica batch size, mixed precision, or a larger GPU.
    Source: https://www.tensorflow.org/guide/gpu
    """
    if not training.memory and run.devices_kind == "gpu":
        yield unknown("memory", "TensorFlow did not report the memory in use")
    elif not training.memory:
        yield NotApplicable(reason="all replicas are on the CPU")
    else:
        for gpu in training.memory:
            used = gpu.peak_bytes / gpu.limit_bytes
            observed = f"peak {gpu.peak_bytes / 2**30:.2f} of {gpu.limit_bytes / 2**30:.2f} GiB ({used:.0%})"
            if used <= most_used:
                yield evidence(gpu.device, observed)
            else:
                brief = "the training fills its memory"
                yield finding(gpu.device, observed, f"at most {most_used:.0%}", _REMEDY, brief=brief)
