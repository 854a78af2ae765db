from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Outcome, Remedy, Rollback, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks._gpus import DRIVER, MIB, answering, judge, not_answering, size, unread

_SHOWN = 6
"""Processes that a finding lists."""


@check("gpu.free", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
def free(
    gpus: Gpus, *, max_used_mib: int = 1024, allow_processes: bool = False, max_desktop_share: float = 0.25
) -> Iterator[Outcome]:
    """No GPU is in use by another process.

    Why: TensorFlow reserves nearly all free GPU memory when it starts. If another process holds memory, the job runs
    out of memory, at once or at its largest step. Processes in other containers are not listed, but their memory is
    counted. A desktop may use a quarter of the memory (``max_desktop_share``), because a job cannot take it away, and
    where processes were not read, that much may be a desktop's. The GPUs are read before kdoctor's own trainings start.
    Remedy: find and stop the process that holds the memory, or train on other GPUs.
    Sources:
        https://www.tensorflow.org/guide/gpu
        https://docs.nvidia.com/deploy/nvml-api/
    """
    yield from not_answering(gpus)
    present = answering(gpus)
    most = max_used_mib * MIB
    taken = [
        gpu
        for gpu in present
        if gpu.is_in_use(most_bytes=most, desktop_share=max_desktop_share, allow_processes=allow_processes)
    ]
    remedy = _remedy(taken)
    for gpu in present:
        busy = gpu in taken
        problem = unread(gpu, "memory_used_bytes", "processes")
        if problem and not busy:
            yield problem
            continue
        yield judge(
            gpu.subject,
            _describe(gpu),
            ok=not busy,
            expected=("" if allow_processes else "no compute process, and ") + f"at most {max_used_mib} MiB used",
            remedy=remedy,
            rollback=Rollback.irreversible("not possible (write down the command line of the process first)"),
            brief=_brief([other for other in taken if bool(other.processes) == bool(gpu.processes)]),
            value="" if gpu.processes else "all free" if len(gpus.devices) > 1 else "free",
        )


def _pids(gpus: Sequence[Gpu]) -> list[int]:
    return sorted({process.pid for gpu in gpus for process in gpu.processes or ()})


def _remedy(taken: Sequence[Gpu]) -> Remedy:
    pids = ",".join(map(str, _pids(taken)))
    return Remedy.configure(
        "Find and stop the process that holds the memory, or train on other GPUs.",
        look=(
            "nvidia-smi --query-compute-apps=gpu_bus_id,pid,process_name,used_memory --format=csv",
            f"ps -o pid,user,lstart,args -p {pids}" if pids else "sudo fuser -v /dev/nvidia*",
        ),
    )


def _brief(alike: Sequence[Gpu]) -> str:
    """Who holds the memory of these GPUs, and how much of it."""
    pids = _pids(alike)
    used = sorted(gpu.memory_used_bytes for gpu in alike if gpu.memory_used_bytes is not None)
    amounts = list(dict.fromkeys(size(value) for value in (*used[:1], *used[-1:])))
    amount = f" ({' to '.join(amounts)} used)" if amounts else ""
    if not pids and any(gpu.graphics_processes for gpu in alike):
        return f"in use by a desktop{amount}"
    if not pids:
        unread = any(gpu.processes is None for gpu in alike)
        return f"memory in use{'' if unread else ', no compute process listed'}{amount}"
    return f"in use by {f'process {pids[0]}' if len(pids) == 1 else counted(len(pids), 'process', 'processes')}{amount}"


def _describe(gpu: Gpu) -> str:
    total = "" if gpu.memory_total_bytes is None else f" of {size(gpu.memory_total_bytes)}"
    used = "used memory not read" if gpu.memory_used_bytes is None else f"{size(gpu.memory_used_bytes)}{total} used"
    if gpu.processes is None:
        return f"{used}, processes not read"
    named = [
        f"{process.pid}" + (f" ({size(process.used_memory_bytes)})" if process.used_memory_bytes is not None else "")
        for process in gpu.processes
    ]
    if not named and gpu.graphics_processes:
        desktop = [process.name or str(process.pid) for process in gpu.graphics_processes]
        return f"{used}, in use by a desktop: {some(desktop, _SHOWN)}"
    holders = f"in use by {'process' if len(named) == 1 else 'processes'} {some(named, _SHOWN)}"
    return f"{used}, {holders if named else 'no compute process listed'}"
