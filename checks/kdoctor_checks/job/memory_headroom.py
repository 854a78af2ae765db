"""Each GPU has memory to spare at this batch."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks.job._job import SCENARIO, change, training_of


@check("job.memory-headroom", severity=Severity.WARNING, requires=["job.trains"], scenario=SCENARIO)
def memory_headroom(run: SmokeRun, *, most_used: float = 0.9) -> Iterator[Outcome]:
    """Each GPU has memory to spare at this batch.

    Why: a job that fills the memory ends at the first batch that is a little larger, or when a neighbour starts; the
    steps of kdoctor see the peak of a training, not of validation or saving.
    Remedy: take a smaller batch for each replica, mixed precision, or a larger GPU.
    Source: https://www.tensorflow.org/guide/gpu
    """
    training = training_of(run)
    if isinstance(training, Unjudged):
        yield training
    elif not training.memory and run.devices_kind == "gpu":
        yield Unjudged(subject="memory", reason="TensorFlow did not say how much of it was in use")
    elif not training.memory:
        yield NotApplicable(reason="no replica is on a GPU")
    else:
        for gpu in training.memory:
            used = gpu.peak_bytes / gpu.limit_bytes
            observed = f"peak {gpu.peak_bytes / 2**30:.2f} of {gpu.limit_bytes / 2**30:.2f} GiB ({used:.0%})"
            if used <= most_used:
                yield Evidence(subject=gpu.device, observed=observed)
            else:
                yield change(
                    gpu.device,
                    observed,
                    f"at most {most_used:.0%}",
                    "Take a smaller batch for each replica, or mixed precision.",
                )
