from collections.abc import Iterator
from dataclasses import replace

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Host, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._builds import after_a_gpu
from kdoctor_checks._gpus import GIB, MIB, NEW_CONTAINER, size
from kdoctor_checks.host._sizes import short_size

_SUBJECT = "/dev/shm"  # noqa: S108 - the mount point, where kdoctor writes nothing


@check("host.shared-memory", severity=Severity.WARNING, needs_gpus=True)
def shared_memory(
    host: Host, pci: PciDevices | Unavailable, *, least_gib: float = 1.0, least_free_mib: int = 256
) -> Iterator[Outcome]:
    """The shared memory at /dev/shm is large enough for NCCL.

    Why: NCCL exchanges gradients through /dev/shm between GPUs without a direct connection. Containers have 64 MiB of
    it by default, and NCCL then fails with "unhandled system error". The baseline training fails if the job really
    needs more.
    Remedy: start the container with more shared memory (--shm-size=1g), or enlarge /dev/shm.
    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
        https://github.com/tensorflow/tensorflow/issues/44637
        https://github.com/NVIDIA/nccl/issues/473
    Failure modes: nccl_system_error
    """
    total, free = host.shm_total_bytes, host.shm_free_bytes
    if host.os != "Linux":
        yield Unjudged(subject=_SUBJECT, reason=f"{host.os} has no /dev/shm")
    elif total is None or free is None:
        yield Unjudged(subject=_SUBJECT, reason="its size was not read")
    elif total < least_gib * GIB or free < least_free_mib * MIB:
        finding = _finding(
            host, f"{size(total)} total, {size(free)} free", f"{least_gib:g} GiB total, {least_free_mib} MiB free"
        )
        yield replace(finding, after=after_a_gpu(pci))
    else:
        observed = f"{size(total)} total, {size(free)} free"
        yield Evidence(subject=_SUBJECT, observed=observed, brief=f"{_SUBJECT} {short_size(total)}")


def _finding(host: Host, observed: str, expected: str) -> Finding:
    if host.container not in (None, "none"):
        remedy = Remedy.configure(
            "Start the container with more shared memory (Docker option shown; in Kubernetes mount an emptyDir "
            "with medium Memory at /dev/shm).",
            f"docker run --shm-size=1g --ulimit memlock=-1 {quoted(host.image or '<image>')} '<command>'",
        )
        rollback = NEW_CONTAINER
    else:
        remedy = Remedy.configure(
            "Remove files that earlier jobs left there, or enlarge it until the next restart (permanently in "
            "/etc/fstab).",
            "sudo mount -o remount,size=8g /dev/shm",
            look=("ls -la /dev/shm",),
        )
        total = (host.shm_total_bytes or 0) // 1024
        rollback = Rollback.to("restore the recorded size", f"sudo mount -o remount,size={total}k /dev/shm")
    return Finding(
        subject=_SUBJECT, observed=observed, expected=f"at least {expected}", remedy=remedy, rollback=rollback
    )
