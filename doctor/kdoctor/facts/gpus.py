"""GPUs as the driver's management library (NVML) reports them.

Names, states and units are those of NVML (https://docs.nvidia.com/deploy/nvml-api/) and nvidia-smi. Masks and
thresholds are kept as read; checks interpret them.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar, Literal

from kdoctor.facts.base import FactGroup
from kdoctor.facts.bounds import ABOVE_ZERO, PERCENT, POSITIVE, SIGNED, AtMost, Identity, OfHbm, Reason, Within, marked
from kdoctor.records import record

TopologyLevel = Literal["internal", "PIX", "PXB", "PHB", "NODE", "SYS"]
"""The distance of two GPUs as in ``nvidia-smi topo -m``, nearest first: on one board, one PCIe switch, several PCIe
switches, one host bridge, one NUMA node, different sockets."""

P2pStatus = Literal["OK", "CNS", "GNS", "TNS", "DR", "NS"]
"""Whether a GPU can access another's memory, as in ``nvidia-smi topo -p2p``: yes; not supported by the chipset, the
GPU or the topology; disabled by a registry key; not supported."""

ComputeMode = Literal["default", "exclusive-thread", "prohibited", "exclusive-process"]
VirtualizationMode = Literal["none", "passthrough", "vgpu", "host-vgpu", "host-vsga"]
"""Bare metal; passed through to this virtual machine; a vGPU in this virtual machine; the host of vGPUs."""
AddressingMode = Literal["none", "hmm", "ats"]
"""How the GPU shares the CPU's page tables: not, by the kernel's heterogeneous memory management, in hardware."""
FabricState = Literal["not-supported", "not-started", "in-progress", "completed"]
"""The state of the GPU's registration with the NVLink fabric."""
RecoveryAction = Literal[
    "none", "reset", "reboot", "drain-p2p", "drain-and-reset", "recover-imex-domain", "bus-reset", "system-reboot"
]
"""The recovery action that the driver requests (field 230, nvidia-smi's "GPU Recovery Action")."""
NvLinkRemote = Literal["gpu", "switch", "npu", "unknown"]
MultiGpuMode = Literal["none", "protected-pcie", "nvle"]

EVENT_GPU_IDLE = 0x001
EVENT_APPLICATIONS_CLOCKS = 0x002
EVENT_SW_POWER_CAP = 0x004
EVENT_HW_SLOWDOWN = 0x008
EVENT_SYNC_BOOST = 0x010
EVENT_SW_THERMAL_SLOWDOWN = 0x020
EVENT_HW_THERMAL_SLOWDOWN = 0x040
EVENT_HW_POWER_BRAKE = 0x080
EVENT_DISPLAY_CLOCKS = 0x100
"""Bits of ``clock_event_reasons`` (``nvmlClocksEventReason...``)."""

EVENT_NAMES = {
    EVENT_HW_SLOWDOWN: "HW Slowdown",
    EVENT_HW_THERMAL_SLOWDOWN: "HW Thermal Slowdown",
    EVENT_HW_POWER_BRAKE: "HW Power Brake Slowdown",
    EVENT_SW_THERMAL_SLOWDOWN: "SW Thermal Slowdown",
    EVENT_SW_POWER_CAP: "SW Power Cap",
    EVENT_APPLICATIONS_CLOCKS: "Applications Clocks Setting",
    EVENT_SYNC_BOOST: "Sync Boost",
    EVENT_DISPLAY_CLOCKS: "Display Clock Setting",
}
"""nvidia-smi's names of the bits, except idle."""


_HBM = re.compile(r"\b(?:A30|A[18]00|G?H[128]00|H20|G?B[123]00)(?!\d)")
"""Names of GPUs with HBM since Ampere. All have ECC and row remapping."""


@record
class GpuProcess:
    """A process that uses memory of a GPU."""

    pid: int
    """Process id, in the process namespace of the driver."""
    used_memory_bytes: int | None
    """Used memory; None if the driver does not report it."""
    name: str | None = None
    """The program's path; None across process namespaces."""


@record
class NvLink:
    """One NVLink of a GPU. A field that could not be read is None, and its NVML error is in ``errors``."""

    index: Annotated[int, Identity()]
    active: bool | None = None
    version: int | None = None
    """Major version of NVLink: 3 on A100, 4 on H100, 5 on B200."""
    speed_gbs: Annotated[float | None, POSITIVE] = None
    """Bandwidth in one direction, GB/s (10^9 bytes)."""
    remote_bus_id: str | None = None
    """PCI address of the remote device in sysfs form; it may be invisible to a virtual machine."""
    remote_kind: NvLinkRemote | None = None
    errors: Mapping[str, str] = field(default_factory=dict)
    """Field name to the name of the NVML error."""


@record
class Gpu:
    """One GPU. A field that could not be read is None, and its NVML error is in ``errors``."""

    index: Annotated[int, Identity()]
    """NVML's index, also used by nvidia-smi; unless ``numbered``, only the place in the list."""
    numbered: bool = True
    """Whether the index was read. A recording of selected GPUs has their addresses only."""
    name: str | None = None
    uuid: Annotated[str | None, Identity()] = None
    bus_id: Annotated[str | None, Identity()] = None
    """PCI address in sysfs form: ``0000:3b:00.0``."""
    compute_capability: str | None = None
    """``major.minor``."""
    memory_total_bytes: Annotated[int | None, POSITIVE] = None
    memory_used_bytes: Annotated[int | None, AtMost("memory_total_bytes")] = None
    processes: tuple[GpuProcess, ...] | None = None
    """Compute processes; empty if the driver reported none."""
    graphics_processes: tuple[GpuProcess, ...] | None = None
    """Processes with a graphics context (nvidia-smi's types G and C+G): a desktop and its programs."""
    pcie_generation: Annotated[int | None, Within(ABOVE_ZERO, 16), AtMost("pcie_generation_max")] = None
    """Current link generation; lower while a GPU is idle."""
    pcie_generation_max: Annotated[int | None, Within(ABOVE_ZERO, 16), AtMost("pcie_generation_gpu_max")] = None
    """Highest generation that both GPU and slot support."""
    pcie_width: Annotated[int | None, Within(ABOVE_ZERO, 64), AtMost("pcie_width_max")] = None
    """Current number of lanes."""
    pcie_width_max: Annotated[int | None, Within(ABOVE_ZERO, 64)] = None
    """Lanes that both GPU and slot support."""
    performance_state: int | None = None
    """P-state: 0 is the fastest; 8 and higher are idle."""

    architecture: str | None = None
    """``Ampere``, ``Ada Lovelace``, ``Hopper``, ``Blackwell``, ..."""
    minor_number: Annotated[int | None, Identity()] = None
    """Number of its device node ``/dev/nvidiaN``; may differ from the index."""
    pcie_generation_gpu_max: Annotated[int | None, Within(ABOVE_ZERO, 16)] = None
    """Highest link generation that the GPU supports in any slot."""
    pcie_replay_counter: int | None = None
    """PCIe replays since the driver was loaded; healthy GPUs have a few."""
    bar1_total_bytes: Annotated[int | None, POSITIVE] = None
    """Size of BAR1, the window into the GPU's memory."""
    compute_mode: ComputeMode | None = None
    persistence_mode: bool | None = None
    mig_mode: bool | None = None
    """Whether MIG (Multi-Instance GPU) is on; None with NVML_ERROR_NOT_SUPPORTED if the GPU has no MIG."""
    mig_mode_pending: bool | None = None
    """The mode after the next reset."""
    ecc_mode: Annotated[bool | None, OfHbm()] = None
    ecc_mode_pending: Annotated[bool | None, OfHbm()] = None
    """The mode after the next reboot."""
    ecc_corrected_volatile: int | None = None
    """Corrected ECC errors since the driver was loaded."""
    ecc_uncorrected_volatile: Annotated[int | None, OfHbm()] = None
    """Uncorrected ECC errors since the driver was loaded."""
    ecc_corrected_aggregate: int | None = None
    """Corrected ECC errors over the GPU's lifetime."""
    ecc_uncorrected_aggregate: int | None = None
    sram_threshold_exceeded: bool | None = None
    """Whether uncorrected SRAM errors exceed NVIDIA's threshold for replacement."""
    retired_pages_single_bit: int | None = None
    """Pages retired because of several single-bit errors (before Ampere)."""
    retired_pages_double_bit: int | None = None
    """Pages retired because of a double-bit error (before Ampere)."""
    retired_pages_pending: bool | None = None
    """Whether pages will be retired at the next reboot."""
    remapped_rows_correctable: int | None = None
    """Rows remapped because of correctable errors (Ampere and later)."""
    remapped_rows_uncorrectable: int | None = None
    remapped_rows_pending: Annotated[bool | None, OfHbm()] = None
    """Whether rows will be remapped at the next reset."""
    remapped_rows_failure: Annotated[bool | None, OfHbm()] = None
    """Whether a row could not be remapped."""
    channel_repair_pending: bool | None = None
    """Whether a memory channel will be repaired at the next reset (Blackwell and some Hopper)."""
    tpc_repair_pending: bool | None = None
    """Whether a texture processing cluster (TPC) will be repaired at the next reset."""
    unrepairable_memory: bool | None = None
    """Whether a memory fault remains that neither remapping nor repair can remove."""
    inforom_valid: bool | None = None
    """Whether the checksums of the infoROM are right; the error is NVML_ERROR_CORRUPTED_INFOROM if not."""
    recovery_action: RecoveryAction | None = None

    temperature_c: Annotated[int | None, Within(ABOVE_ZERO, 1000), OfHbm()] = None
    temperature_slowdown_c: Annotated[int | None, Within(ABOVE_ZERO, 1000)] = None
    """Temperature at which the GPU slows down; older families and some drivers only."""
    temperature_operating_max_c: Annotated[int | None, Within(ABOVE_ZERO, 1000)] = None
    """Highest temperature for work, from which the clocks are lowered; often below that of the slowdown."""
    temperature_shutdown_c: Annotated[int | None, POSITIVE] = None
    """Temperature at which the GPU shuts down; older families and some drivers only."""
    temperature_margin_c: Annotated[int | None, Within(-1000, 1000)] = None
    """T.Limit: degrees left until the GPU throttles; newer families."""
    temperature_slowdown_margin_c: Annotated[int | None, SIGNED] = None
    """Margin at which the GPU slows down: an offset, zero or negative."""
    temperature_shutdown_margin_c: Annotated[int | None, SIGNED] = None
    """Margin at which the GPU shuts down: an offset, negative."""
    fan_speed_percent: Annotated[int | None, Within(0, 1000)] = None
    power_draw_w: float | None = None
    enforced_power_limit_w: Annotated[float | None, POSITIVE] = None
    default_power_limit_w: Annotated[float | None, POSITIVE] = None
    """The factory default."""
    clock_sm_mhz: Annotated[int | None, POSITIVE] = None
    clock_sm_max_mhz: Annotated[int | None, POSITIVE] = None
    clock_memory_mhz: Annotated[int | None, POSITIVE] = None
    clock_memory_max_mhz: Annotated[int | None, POSITIVE] = None
    clock_event_reasons: Annotated[tuple[int, ...] | None, OfHbm()] = None
    """Why the clocks are not higher (nvidia-smi's "Clocks Event Reasons", formerly "Throttle Reasons"): one bit mask
    per reading, in order of time, with the bits ``EVENT_...``. A bit that is not in every reading was transient."""
    utilization_gpu_percent: Annotated[int | None, PERCENT] = None
    """Percentage of the last sample period in which a kernel ran."""
    utilization_memory_percent: Annotated[int | None, PERCENT] = None
    """Percentage of the last sample period in which memory was read or written."""

    nvlinks: tuple[NvLink, ...] | None = None
    """NVLinks by index; None with NVML_ERROR_NOT_SUPPORTED if the GPU has none."""
    fabric_state: FabricState | None = None
    fabric_status: str | None = None
    """The result of the registration: ``success``, or the name of the NVML error."""
    fabric_problems: tuple[str, ...] | None = None
    """What the fabric's health reports as not healthy, as nvidia-smi names it: ``route unhealthy: True``; empty if
    healthy; None if not reported."""
    virtualization_mode: VirtualizationMode | None = None
    addressing_mode: AddressingMode | None = None
    cpu_affinity: tuple[int, ...] | None = None
    """Logical processors near the GPU."""
    numa_affinity: tuple[int, ...] | None = None
    """NUMA nodes near the GPU (``topo -m``'s column "NUMA Affinity")."""
    gpu_numa_id: int | None = None
    """NUMA node of the GPU's memory (``topo -m``'s "GPU NUMA ID"); most machines have none."""
    answers_s: float | None = field(default=None, compare=False)
    """Seconds that the driver took to answer all calls for this GPU, after it was opened."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Field name to the name of the NVML error of its call."""

    @property
    def subject(self) -> str:
        """The GPU's name in reports: index and bus id. An index that was not read is never shown."""
        if not self.numbered:
            return f"GPU at {self.bus_id}" if self.bus_id else f"GPU {self.uuid or 'of unknown address'}"
        return f"GPU {self.index} ({self.bus_id})" if self.bus_id else f"GPU {self.index}"

    def owes(self, name: str) -> bool:
        """Whether every GPU of its kind reports this field, so that "not supported" leaves it unknown."""
        with_hbm = _HBM.search(self.name or "") and self.virtualization_mode in (None, "none", "passthrough")
        return bool(with_hbm and not self.mig_mode and name in marked(Gpu, OfHbm))

    def is_in_use(
        self, *, most_bytes: int = 1 << 30, desktop_share: float = 0.25, allow_processes: bool = False
    ) -> bool:
        """Whether other work holds it, by what was read.

        Args:
            most_bytes: of memory that may be used.
            desktop_share: the part of the memory that may be used where it can be a desktop's: one runs, or the
                processes were not read.
            allow_processes: whether compute processes alone do not count.
        """
        used = self.memory_used_bytes
        if self.processes is None or (self.graphics_processes and self.processes == ()):
            most_bytes = max(most_bytes, int(desktop_share * (self.memory_total_bytes or 0)))
        return (used is not None and used > most_bytes) or bool(self.processes and not allow_processes)

    @property
    def selector(self) -> str:
        """What ``nvidia-smi -i`` knows the GPU by; empty if nothing was read: a wrong index names a healthy GPU."""
        return self.bus_id or (str(self.index) if self.numbered else self.uuid or "")


@record
class GpuPair:
    """Two GPUs: their nearest common ancestor, and how they can reach each other."""

    first: int
    second: int
    level: TopologyLevel | None
    """None if the driver did not report it."""
    error: Reason = None
    """The NVML error's name, if ``level`` is None."""
    nvlinks: int | None = None
    """Number of active NVLinks between them, direct or through switches (``NV18``). None with
    NVML_ERROR_NOT_SUPPORTED in ``errors`` if one of them has no NVLink."""
    p2p_read: P2pStatus | None = None
    p2p_write: P2pStatus | None = None
    p2p_nvlink: P2pStatus | None = None
    errors: Mapping[str, str] = field(default_factory=dict)
    """Name of a further field (not of ``level``) to the name of the NVML error."""
    named: str | None = None
    """What reports call the pair, if an index of it was not read."""

    @classmethod
    def of(cls, one: Gpu, other: Gpu, error: str | None = None) -> "GpuPair":
        """A pair of which nothing was read, because of that error."""
        named = None if one.numbered and other.numbered else f"{one.subject} - {other.subject}"
        return cls(first=one.index, second=other.index, level=None, error=error, named=named)

    @property
    def subject(self) -> str:
        """The pair's name in reports."""
        return self.named or f"GPU {self.first} - GPU {self.second}"


NvmlState = Literal["ready", "library-absent", "driver-not-loaded", "library-mismatch", "no-permission", "failed"]


@record
class Gpus(FactGroup):
    """The driver and its GPUs, through NVML."""

    group: ClassVar[str] = "gpus"

    state: NvmlState
    """Whether NVML could be initialised, or why not."""
    error: Reason = None
    """The message of NVML or the loader, if ``state`` is not ``ready``."""
    driver_version: str | None = None
    """Version of the driver's user-space library."""
    cuda_driver_version: str | None = None
    """Highest CUDA release that the driver supports, ``major.minor``."""
    count: int | None = None
    """NVML's device count; greater than ``len(devices)`` if a GPU could not be opened."""
    devices: tuple[Gpu, ...] = ()
    """In order of index. A GPU that could not be opened has only its index and its errors."""
    pairs: tuple[GpuPair, ...] = ()
    """Each unordered pair once."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Errors of calls that are not about a single GPU: field name to the error's name."""
    nvml_version: str | None = None
    """Version of NVML, with the driver's version at its end: ``12.570.158.01``."""
    conf_compute: bool | None = None
    """Whether confidential computing is on."""
    conf_compute_multi_gpu: MultiGpuMode | None = None
    """The multi-GPU mode of confidential computing."""
    conf_compute_ready: bool | None = None
    """Whether the GPUs accept work under confidential computing."""
    not_understood: tuple[str, ...] = ()
    """Lines of an imported dump that kdoctor does not know."""
    node_errors: Mapping[str, str] | None = None
    """Device nodes (/dev/nvidia*) that could not be opened for reading and writing, and the system's error name
    (``EPERM`` if a control group forbids it despite the file's mode); None if this was not tried."""
