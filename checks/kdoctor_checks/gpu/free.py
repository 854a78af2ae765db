from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Outcome, Rollback, Severity
from kdoctor.text.lists import some
from kdoctor_checks._gpus import MIB, answering, configure, judge, size, unread

_SHOWN = 6
"""Processes that a finding lists."""


@check("gpu.free", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def free(gpus: Gpus, *, max_used_mib: int = 1024, allow_processes: bool = False) -> Iterator[Outcome]:
    """No GPU is in use by another process.

    Why: TensorFlow reserves nearly all free GPU memory when it starts. If another process holds memory, the job runs
    out of memory, at once or at its largest step. Processes in other containers are not listed, but their memory is
    counted. The GPUs are read before kdoctor's own trainings start.
    Remedy: find and stop the process that holds the memory, or train on other GPUs.
    Sources:
        https://www.tensorflow.org/guide/gpu
        https://docs.nvidia.com/deploy/nvml-api/
    """
    for gpu in answering(gpus):
        processes, used = gpu.processes or (), gpu.memory_used_bytes
        busy = (used is not None and used > max_used_mib * MIB) or bool(processes and not allow_processes)
        problem = unread(gpu, "memory_used_bytes", "processes")
        if problem and not busy:
            yield problem
            continue
        pids = ",".join(str(process.pid) for process in processes)
        yield judge(
            gpu.subject,
            _describe(gpu),
            ok=not busy,
            expected=("" if allow_processes else "no compute process, and ") + f"at most {max_used_mib} MiB used",
            remedy=configure(
                "Find and stop the process that holds the memory, or train on other GPUs.",
                "nvidia-smi --query-compute-apps=gpu_bus_id,pid,process_name,used_memory --format=csv",
                f"ps -o pid,user,lstart,args -p {pids}" if pids else "sudo fuser -v /dev/nvidia*",
            ),
            rollback=Rollback.irreversible("not possible (write down the command line of the process first)"),
        )


def _describe(gpu: Gpu) -> str:
    total = "" if gpu.memory_total_bytes is None else f" of {size(gpu.memory_total_bytes)}"
    used = "used memory not read" if gpu.memory_used_bytes is None else f"{size(gpu.memory_used_bytes)}{total} used"
    if gpu.processes is None:
        return f"{used}, processes not read"
    named = [
        f"{process.pid}" + (f" ({size(process.used_memory_bytes)})" if process.used_memory_bytes is not None else "")
        for process in gpu.processes
    ]
    holders = f"in use by {'process' if len(named) == 1 else 'processes'} {some(named, _SHOWN)}"
    return f"{used}, {holders if named else 'no process listed'}"
