from collections.abc import Iterator
from statistics import median

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import DRIVER, DRIVER_MESSAGES, RESPONDING, answering, not_answering

_LEAST_S = 0.5
"""A GPU that answers faster than this is never an outlier: a busy machine delays the calls for one GPU or another."""


@check("gpu.response-time", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def response_time(gpus: Gpus, *, most_s: float = 3.0, times_others: float = 5.0) -> Iterator[Outcome]:
    """The driver answers for every GPU within seconds, and for none much later than for the others.

    Why: a GPU whose firmware or PCIe link fails answers slower and slower before it is lost, and tools that monitor it
    block meanwhile. All calls for a healthy GPU take a fraction of a second. The time does not include the wake-up of a
    sleeping GPU. One GPU is an outlier if it takes several times the median of the others. A loaded machine may need
    higher limits.
    Remedy: look for messages about the GPU in the kernel log, and restart the machine before a long job.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://docs.nvidia.com/deploy/driver-persistence/
    """
    yield from not_answering(gpus)
    present = answering(gpus)
    if present and all(gpu.answers_s is None for gpu in present):
        yield NotApplicable(reason="the driver's answers were not timed: the facts come from other tools' output")
        return
    for gpu in present:
        others = [other.answers_s for other in present if other is not gpu and other.answers_s is not None]
        usual = median(others) if others else None
        taken = gpu.answers_s
        if taken is None:
            yield Unjudged(subject=gpu.subject, reason="the time of the driver's answers was not measured")
        elif taken > most_s or (usual is not None and taken > max(_LEAST_S, times_others * usual)):
            yield _finding(gpu, taken, usual, most_s)
        else:
            yield Evidence(subject=gpu.subject, observed=f"all calls answered in {taken:.3g} s")


def _finding(gpu: Gpu, taken: float, usual: float | None, most_s: float) -> Finding:
    compared = "" if usual is None else f"; median of the others: {usual:.2g} s"
    return Finding(
        subject=gpu.subject,
        observed=f"the driver took {taken:.2g} s to answer all calls{compared}",
        brief="the driver answers slowly",
        expected=f"at most {most_s:g} s, and about as fast as for the others",
        remedy=Remedy.inspect(
            "Look for messages about this GPU, and restart the machine before a long job.",
            DRIVER_MESSAGES,
            "time nvidia-smi -q > /dev/null",
        ),
        explained_by=(RESPONDING, "gpu.kernel-log", "gpu.persistence-mode"),
    )
