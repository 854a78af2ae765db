from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Outcome, Rollback, Severity
from kdoctor_checks._gpus import MIB, answering, configure, judge, size, unread


@check("gpu.free", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def free(gpus: Gpus, *, max_used_mib: int = 1024, allow_processes: bool = False) -> Iterator[Outcome]:
    """No GPU is in use by another process.

    Why: TensorFlow reserves nearly all free GPU memory when it starts. If another process holds memory, the job runs
    out of memory, at once or at its largest step. Processes in other containers are not listed, but their memory is
    counted. The GPUs are read before kdoctor's own trainings start.
    Remedy: find the process that holds the memory and stop it, or train on other GPUs.
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
                "Find the process that holds the memory and stop it, or train on other GPUs.",
                "nvidia-smi --query-compute-apps=gpu_bus_id,pid,process_name,used_memory --format=csv",
                f"ps -o pid,user,lstart,args -p {pids}" if pids else "sudo fuser -v /dev/nvidia*",
            ),
            rollback=Rollback.irreversible("not possible (write down the command line of the process first)"),
        )


def _describe(gpu: Gpu) -> str:
    used = "used memory not read" if gpu.memory_used_bytes is None else f"{size(gpu.memory_used_bytes)} used"
    total = "" if gpu.memory_total_bytes is None else f" of {size(gpu.memory_total_bytes)}"
    if gpu.processes is None:
        return f"{used}{total}, processes not read"
    named = [
        f"{process.pid} ({'?' if process.used_memory_bytes is None else size(process.used_memory_bytes)})"
        for process in gpu.processes
    ]
    return f"{used}{total}, " + (f"in use by process {', '.join(named)}" if named else "no process listed")
