from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import TRANSLATED, Gpus, Kernel, PciDevice, PciDevices
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import DRIVER, RESPONDING, lost_addresses, subjects
from kdoctor_checks._kernel_log import log_subject
from kdoctor_checks.topology._peers import not_applicable, peer_traffic

PASS_THROUGH = Remedy.reboot(
    "Boot the kernel with iommu=pt (commands for Ubuntu), or turn VT-d or the IOMMU off in firmware.",
    "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub",
    "sudo update-grub",
    "sudo reboot",
    look=("cat /proc/cmdline", "sudo dmesg | grep -E 'DMAR|AMD-Vi'"),
)
NO_PASS_THROUGH = Rollback.to(
    "remove the kernel parameter again",
    "sudo sed -i 's/iommu=pt //' /etc/default/grub",
    "sudo update-grub",
    "sudo reboot",
)


@check("topology.iommu", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def iommu(pci: PciDevices, kernel: Kernel, gpus: Gpus) -> Iterator[Outcome]:
    """The IOMMU does not translate addresses of GPUs that exchange data over PCIe.

    Why: on bare metal, CUDA does not support peer-to-peer copies over PCIe through a translating IOMMU. Jobs have hung
    at the first all-reduce or trained to NaN. Virtual machines and confidential computing need the translation. NVLink
    traffic does not pass the IOMMU.
    Remedy: boot the kernel with iommu=pt, or turn VT-d or the IOMMU off in the firmware.
    Sources:
        https://docs.nvidia.com/cuda/cuda-programming-guide/03-advanced/multi-gpu-systems.html
        https://docs.nvidia.com/nim/maxine/lipsync/latest/advanced-usage/multi-gpu.html
        https://github.com/tensorflow/tensorflow/issues/44976
        https://github.com/tensorflow/tensorflow/issues/32654
    Failure modes: iommu_acs
    """
    if excuse := not_applicable(pci, gpus, "the IOMMU"):
        yield excuse
    elif gpus.conf_compute:
        yield NotApplicable(reason="confidential computing needs the IOMMU")
    else:
        traffic = peer_traffic(gpus)
        names = subjects(gpus, pci)
        for device in pci.gpus:
            subject = log_subject(device.bus_id, names)
            if device.bus_id in lost_addresses(gpus, pci):
                yield Unjudged(subject=subject, reason="does not respond", explained_by=(RESPONDING,))
            else:
                yield _judge(subject, device, kernel, uses=traffic.get(device.bus_id))


def _judge(subject: str, device: PciDevice, kernel: Kernel, *, uses: bool | None) -> Outcome:
    if device.iommu_type in TRANSLATED:
        group = f"IOMMU group {device.iommu_group}, type {device.iommu_type}"
        if uses:
            return _finding(subject, group, device.iommu_type, kernel)
        if uses is False:
            return Evidence(subject=subject, observed=f"{group}; no data exchange over PCIe")
        reason = f"{group}, but whether it exchanges data over PCIe was not read"
        return Unjudged(subject=subject, reason=reason)
    if device.iommu_type:
        return Evidence(subject=subject, observed=f"IOMMU type {device.iommu_type}")
    if device.iommu_group is None and kernel.iommu_groups == 0:
        return Evidence(subject=subject, observed="no IOMMU in use")
    return Unjudged(subject=subject, reason="whether the IOMMU translates its addresses was not read")


def _finding(subject: str, group: str, kind: str, kernel: Kernel) -> Finding:
    parameters = " ".join(kernel.iommu_parameters or ()) or "none"
    return Finding(
        subject=subject,
        observed=f"the IOMMU translates its addresses ({group}, kernel parameters: {parameters})",
        brief=f"the IOMMU translates its addresses (type {kind})",
        expected="no IOMMU, or IOMMU type identity",
        remedy=PASS_THROUGH,
        rollback=NO_PASS_THROUGH,
        explained_by=("topology.iommu-faults",),
    )
