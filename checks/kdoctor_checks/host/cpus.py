from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, Host
from kdoctor.model import Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._builds import NO_DRIVER
from kdoctor_checks._gpus import DRIVER, answering, judge

_SUBJECT = "processors"


@check("host.cpus", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def cpus(host: Host, gpus: Gpus, *, least_per_gpu: float = 2.0) -> Iterator[Outcome]:
    """This process may use at least two CPUs per GPU.

    Why: one CPU launches the work of a GPU, and others read and prepare its input. With fewer CPUs, by a control group
    or an affinity mask, the GPUs wait, while TensorFlow starts a thread for every CPU of the machine. The input
    pipeline of the job may need more than two CPUs per GPU.
    Remedy: request more CPUs from the scheduler or the container runtime.
    Sources:
        https://www.tensorflow.org/guide/data_performance
        https://docs.kernel.org/admin-guide/cgroup-v2.html
    """
    count = len(answering(gpus))
    if host.cpu_affinity is None or host.cpu_limit is None:
        what = "affinity mask" if host.cpu_affinity is None else "limit of the control groups"
        yield Unjudged(subject=_SUBJECT, reason=f"the {what} was not read")
        return
    if not count:
        yield Unjudged(subject=_SUBJECT, reason="no GPU responds", explained_by=NO_DRIVER)
        return
    usable = min(float(len(host.cpu_affinity)), host.cpu_limit)
    available = f"{usable:g} available for {counted(count, 'GPU')}"
    yield judge(
        _SUBJECT,
        f"{available} (affinity {len(host.cpu_affinity)}, limit {host.cpu_limit:g})",
        ok=usable >= least_per_gpu * count,
        value=f"{usable:g} {'CPU' if usable == 1 else 'CPUs'}",
        brief=available,
        expected=f"at least {least_per_gpu * count:g}",
        remedy=Remedy.configure(
            "Request more CPUs from the scheduler or the container runtime.",
            look=("taskset -pc $$", "cat /sys/fs/cgroup/cpu.max", "nproc"),
        ),
        rollback=Rollback.nothing("not needed (a new allocation replaces the old one)"),
    )
