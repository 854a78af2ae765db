from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Host, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._builds import after_a_gpu
from kdoctor_checks._gpus import MIB, size

_SUBJECT = "ulimit -l"
_RAISE = "sudo prlimit --pid $$ --memlock=unlimited"
"""Not in a container, whose root may not."""


@check("host.locked-memory", severity=Severity.INFO, needs_gpus=True)
def locked_memory(host: Host, pci: PciDevices | Unavailable, *, least_mib: int = 64) -> Iterator[Outcome]:
    """Processes can lock enough memory for NCCL.

    Why: NCCL's network transport registers buffers as locked memory. The default limit of containers is low, and NCCL
    then fails with "unhandled system error". CUDA's pinned memory does not count, and jobs on a single machine
    usually lock none.
    Remedy: start the container with --ulimit memlock=-1, or raise the limit for the user.
    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/runtime_and_mpi_issues.html
        https://github.com/tensorflow/tensorflow/issues/51760
    Failure modes: nccl_system_error
    """
    limit = host.limit("memlock")
    if limit is None:
        yield Unjudged(subject=_SUBJECT, reason="the limit was not read")
    elif limit.soft is None:
        yield Evidence(subject=_SUBJECT, observed="unlimited")
    elif limit.soft >= least_mib * MIB:
        yield Evidence(subject=_SUBJECT, observed=size(limit.soft))
    else:
        yield Finding(
            subject=_SUBJECT,
            observed=f"{limit.soft // 1024} KiB",
            expected=f"unlimited, or at least {least_mib} MiB",
            remedy=Remedy.configure(
                "Raise the limit in the job's shell, or start the container with --ulimit memlock=-1.",
                *() if limit.hard and host.container else [_RAISE if limit.hard else "ulimit -l unlimited"],
                look=("ulimit -H -l",),
            ),
            after=after_a_gpu(pci),
            rollback=Rollback.to("restore the recorded limit", f"ulimit -l {limit.soft // 1024}"),
        )
