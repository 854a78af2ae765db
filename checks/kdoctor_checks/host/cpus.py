"""Whether there are enough processors for the GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, Host
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import answering

_SUBJECT = "processors"


@check("host.cpus", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def cpus(host: Host, gpus: Gpus, *, least_per_gpu: float = 2.0) -> Iterator[Outcome]:
    """This process may use at least two processors for each GPU.

    Why: one processor launches a GPU's work, and others read and prepare its input. A control group or an affinity
    mask that leaves fewer makes GPUs wait, while TensorFlow starts as many threads as the whole machine has
    processors. How many a job really needs depends on its input: two per GPU is the least.
    Remedy: ask the scheduler or the container runtime for more processors.
    Sources:
        https://www.tensorflow.org/guide/data_performance
        https://docs.kernel.org/admin-guide/cgroup-v2.html
    """
    count = len(answering(gpus))
    if host.cpu_affinity is None or host.cpu_limit is None:
        what = "affinity mask" if host.cpu_affinity is None else "control groups' limit"
        yield Unjudged(subject=_SUBJECT, reason=f"the {what} was not read")
        return
    if not count:
        yield Unjudged(subject=_SUBJECT, reason="no GPU answers")
        return
    usable = min(float(len(host.cpu_affinity)), host.cpu_limit)
    words = f"{usable:g} processors for {count} GPUs (affinity {len(host.cpu_affinity)}, limit {host.cpu_limit:g})"
    if usable >= least_per_gpu * count:
        yield Evidence(subject=_SUBJECT, observed=words)
        return
    yield Finding(
        subject=_SUBJECT,
        observed=words,
        expected=f"at least {least_per_gpu * count:g}",
        remedy=Remedy(
            summary="Ask the scheduler or the container runtime for more processors.",
            action=Action.CONFIGURE,
            commands=("taskset -pc $$", "cat /sys/fs/cgroup/cpu.max", "nproc"),
        ),
        rollback=Rollback.nothing("a new allocation replaces the old one"),
    )
