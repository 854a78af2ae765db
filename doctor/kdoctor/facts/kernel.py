"""The NVIDIA kernel module and its device nodes, kernel settings, and GPU events in the kernel log."""

from typing import Annotated, ClassVar, Literal

from kdoctor.facts.base import FactGroup, Facts
from kdoctor.facts.bounds import Identity
from kdoctor.facts.gpus import Gpus
from kdoctor.facts.host import Host
from kdoctor.records import record


@record
class DeviceNode:
    """A device file of the driver."""

    path: Annotated[str, Identity()]
    mode: str
    """Permission bits in octal: ``0666``."""
    readable: bool
    writable: bool


@record
class KernelDriver(FactGroup):
    """The NVIDIA kernel driver as reported by the kernel."""

    group: ClassVar[str] = "kernel_driver"

    loaded: bool
    version: str | None = None
    """Version of the module, from /proc/driver/nvidia/version or /sys/module/nvidia/version."""
    flavour: Literal["open", "proprietary"] | None = None
    """NVIDIA's open or proprietary kernel module."""
    nodes: tuple[DeviceNode, ...] | None = ()
    """/dev/nvidia*, in order of path; None if unknown (a snapshot made from dumps)."""

    def contradiction(self, facts: Facts) -> str:
        """The module is loaded where NVML works. Only WSL and containers can hide it."""
        gpus, host = facts.get(Gpus), facts.get(Host)
        is_visible = isinstance(host, Host) and host.container == "none" and not host.in_wsl
        works = isinstance(gpus, Gpus) and gpus.state == "ready" and bool(gpus.devices)
        return "the nvidia module is not loaded, and NVML works" if works and is_visible and not self.loaded else ""


@record
class Kernel(FactGroup):
    """Kernel settings and daemons that several GPUs depend on."""

    group: ClassVar[str] = "kernel"

    modules: tuple[str, ...] | None = None
    """Loaded modules ``nvidia*`` and ``nouveau``, in order of name."""
    secure_boot: bool | None = None
    """Whether the firmware enforces signatures (EFI variable ``SecureBoot``)."""
    lockdown: Literal["none", "integrity", "confidentiality"] | None = None
    """The kernel's lockdown mode, which refuses unsigned modules."""
    iommu_parameters: tuple[str, ...] | None = None
    """Parameters of the kernel's command line about the IOMMU and ACS, in order: ``intel_iommu=on``, ``iommu=pt``,
    ``pcie_acs_override=...``."""
    iommu_groups: int | None = None
    """Number of IOMMU groups; 0 if no IOMMU is in use."""
    daemons: tuple[str, ...] | None = None
    """Running NVIDIA daemons (``nv-fabricmanager``, ``nvidia-persistenced``, ``nvidia-imex``,
    ``nvidia-cuda-mps-control``); those of the host are invisible in a container."""

    def contradiction(self, facts: Facts) -> str:
        """The list of modules has the one that is loaded."""
        driver = facts.get(KernelDriver)
        listed = self.modules is None or "nvidia" in self.modules
        return (
            "" if listed or not (isinstance(driver, KernelDriver) and driver.loaded) else "it lacks the loaded module"
        )


KernelLogKind = Literal[
    "xid",
    "sxid",
    "fallen-off-the-bus",
    "iommu-fault",
    "init-failed",
    "no-address-space",
    "not-supported",
    "no-firmware",
    "no-power",
    "driver-crash",
    "driver-hang",
    "program-crash",
    "program-killed",
    "gsp-failed",
    "hmm-failed",
    "version-mismatch",
    "module-rejected",
    "pcie-error",
    "pcie-corrected",
    "hardware-error",
    "hardware-corrected",
    "crash",
    "reset-required",
    "uvm-fatal",
    "not-probed",
    "unclassified",
]
"""The event: an Xid of a GPU; an SXid of an NVSwitch; a GPU that no longer answers on PCIe; a transfer blocked by
the IOMMU; a GPU that could not be initialised (``RmInitAdapter``), and where the driver says why: the firmware
gave it no address space (``BAR1 is 0M``), this driver does not support it or has no GSP firmware for it, or a
power cable is missing; a crash of the kernel in NVIDIA's driver; a task that waits in it for minutes; a crash of a
program in a library of CUDA or TensorFlow; a failure of the GPU's firmware processor (GSP); memory that could not
be shared (``request_free_mem_region``); different versions of user space and kernel module; a rejected module
(signature, Secure Boot); a PCIe error (AER), and one that was corrected; an error of the memory or the processor
(EDAC, machine check), and one that was corrected; a crash of the kernel; a call that fails until the GPU is reset;
a fatal error of unified memory; GPUs that another driver owns; any other problem that NVIDIA's drivers or nouveau
report."""


@record
class KernelLogEvent:
    """One line of the kernel log about a GPU or something it depends on."""

    kind: KernelLogKind
    text: str
    """The line without its timestamp and priority."""
    bus_id: str | None = None
    """The device in the line, as ``0000:3b:00.0``, or None."""
    code: int | None = None
    """Number of an Xid or SXid."""
    instance: str | None = None
    """The MIG instance of an Xid, as the driver numbers it."""
    library: str | None = None
    """The library of CUDA or TensorFlow in which a program crashed: ``libnccl.so.2.18.3``."""
    program: str | None = None
    """The program that the kernel killed because memory ran out."""
    recovery: str | None = None
    """For Xid 154: the requested action, in the driver's words."""
    boot_s: float | None = None
    """Seconds since boot, if the line contains them."""
    time: str | None = None
    """Date and time as written in the log, if any."""
    times: int = 1
    """The number of equal lines. More than 1 for the last of many events that are alike."""


@record
class KernelLog(FactGroup):
    """GPU events in the kernel log. Reading it often requires privileges; without them the group is unavailable."""

    group: ClassVar[str] = "kernel_log"

    source: str
    """The source: ``/dev/kmsg``, or a file's name."""
    lines: int
    complete: bool | None = None
    """Whether the log reaches back to the boot; None if unknown (an excerpt)."""
    until_s: float | None = None
    """Seconds since the boot when this machine's log was read; None for a file."""
    unclassified: int = 0
    """The number of lines of the GPU drivers that are not understood."""
    events: tuple[KernelLogEvent, ...] = ()
