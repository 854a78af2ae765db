from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelLog, PciDevices, Unavailable
from kdoctor.model import Finding, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._kernel_log import LOG_UNREAD, nothing_logged

_FILE = "/etc/modprobe.d/nvidia-uvm-hmm.conf"


@check("driver.memory-regions", severity=Severity.ERROR, needs_gpus=True, unread=LOG_UNREAD)
def memory_regions(log: KernelLog, gpus: Gpus | Unavailable, pci: PciDevices | Unavailable) -> Iterator[Outcome]:
    """The driver reserved the memory regions that unified memory needs.

    Why: with address randomization (KASLR) and multiple large GPUs, nvidia-uvm may fail to reserve a region for
    heterogeneous memory management ("request_free_mem_region ... err -34"). nvidia-smi still works, but every CUDA
    program fails at start. Reported with multiple Blackwell GPUs and on RHEL 9.
    Remedy: disable heterogeneous memory management in nvidia-uvm, or boot the kernel with nokaslr.
    Sources:
        https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html
        https://github.com/NVIDIA/open-gpu-kernel-modules/issues/901
        https://github.com/pytorch/pytorch/issues/159207
    Failure modes: hmm_kaslr
    """
    events = [event for event in log.events if event.kind == "hmm-failed"]
    if not events:
        yield nothing_logged(log, gpus, pci, "failed reservation of a memory region")
        return
    yield Finding(
        subject="nvidia-uvm",
        observed=f"could not reserve a memory region: {events[-1].text!r}",
        brief="could not reserve a memory region",
        expected="no such failure in the kernel log",
        remedy=Remedy.reboot(
            "Disable heterogeneous memory management in nvidia-uvm, and restart.",
            f"echo 'options nvidia_uvm uvm_disable_hmm=1' | sudo tee {_FILE}",
            "sudo reboot",
            look=("sudo dmesg | grep -i request_free_mem_region",),
        ),
        rollback=Rollback.to("restore the previous setting", f"sudo rm {_FILE}", "sudo reboot"),
    )
