"""GPUs as the driver's management library (NVML) reports them.

Names, states and units are those of NVML (https://docs.nvidia.com/deploy/nvml-api/) and nvidia-smi, which shows the
same readings. Masks and thresholds are kept as read: what they mean for a job is for the checks to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup

TopologyLevel = Literal["internal", "PIX", "PXB", "PHB", "NODE", "SYS"]
"""How far apart two GPUs are, nearest first: one board, one PCIe switch, several switches, one host
bridge, one NUMA node, across the sockets. The words are ``nvidia-smi topo -m``'s."""

P2pStatus = Literal["OK", "CNS", "GNS", "TNS", "DR", "NS"]
"""Whether one GPU may reach another's memory, in the words of ``nvidia-smi topo -p2p``: it may; the chipset, the GPU
or the topology does not support it; it is disabled by a registry key; it is not supported."""

ComputeMode = Literal["default", "exclusive-thread", "prohibited", "exclusive-process"]
VirtualizationMode = Literal["none", "passthrough", "vgpu", "host-vgpu", "host-vsga"]
"""Bare metal; passed through to this virtual machine; a share of a GPU in this one; the host's side of shares."""
AddressingMode = Literal["none", "hmm", "ats"]
"""How the GPU shares the CPU's page tables: not, by the kernel's heterogeneous memory management, by hardware."""
FabricState = Literal["not-supported", "not-started", "in-progress", "completed"]
"""Where the GPU's registration with the NVLink fabric stands."""
RecoveryAction = Literal[
    "none", "reset", "reboot", "drain-p2p", "drain-and-reset", "recover-imex-domain", "bus-reset", "system-reboot"
]
"""What the driver asks for to make the GPU well (field 230, nvidia-smi's "GPU Recovery Action")."""
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
"""nvidia-smi's names of them; to be idle is no reason to name."""


@dataclass(frozen=True, kw_only=True)
class GpuProcess:
    """A process that holds memory of a GPU."""

    pid: int
    """Process id, in the process namespace of the driver."""
    used_memory_bytes: int | None
    """Memory held; None where the driver does not say."""
    name: str | None = None
    """The program's path, as the driver knows it; None across process namespaces."""


@dataclass(frozen=True, kw_only=True)
class NvLink:
    """One NVLink of a GPU. A field that could not be read is None, and its NVML error stands in ``errors``."""

    index: int
    active: bool | None = None
    version: int | None = None
    """Major version of NVLink: 3 on A100, 4 on H100, 5 on B200 (NVML counts further for minor versions)."""
    speed_gbs: float | None = None
    """Bandwidth in one direction, GB/s (10^9 bytes)."""
    remote_bus_id: str | None = None
    """PCI address of what it leads to, in sysfs form; a virtual machine may not see that function."""
    remote_kind: NvLinkRemote | None = None
    errors: Mapping[str, str] = field(default_factory=dict)
    """Field name to the name of the NVML error."""


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU. A field that could not be read is None, and its NVML error stands in ``errors``."""

    index: int
    """NVML's index, which is nvidia-smi's."""
    name: str | None = None
    uuid: str | None = None
    bus_id: str | None = None
    """PCI address in sysfs form: ``0000:3b:00.0``."""
    compute_capability: str | None = None
    """``major.minor``."""
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    processes: tuple[GpuProcess, ...] | None = None
    """Compute processes; an empty tuple means that the driver reported none."""
    pcie_generation: int | None = None
    """Current link generation; it drops while a GPU is idle."""
    pcie_generation_max: int | None = None
    """Highest generation that GPU and slot can both do."""
    pcie_width: int | None = None
    """Current number of lanes."""
    pcie_width_max: int | None = None
    """Lanes that GPU and slot can both do."""
    performance_state: int | None = None
    """P-state: 0 is the fastest, 8 and above idle."""

    architecture: str | None = None
    """``Ampere``, ``Ada Lovelace``, ``Hopper``, ``Blackwell``, ..."""
    minor_number: int | None = None
    """Number of its device node ``/dev/nvidiaN``; it is not the index."""
    pcie_generation_gpu_max: int | None = None
    """Highest link generation that the GPU itself can do, whatever the slot."""
    pcie_replay_counter: int | None = None
    """PCIe replays since the driver was loaded; some stand on every healthy GPU."""
    bar1_total_bytes: int | None = None
    """Size of BAR1, the window onto the GPU's memory."""
    compute_mode: ComputeMode | None = None
    persistence_mode: bool | None = None
    mig_mode: bool | None = None
    """Whether MIG (Multi-Instance GPU) is on; None with NVML_ERROR_NOT_SUPPORTED where the GPU has none."""
    mig_mode_pending: bool | None = None
    """The mode after the next reset."""
    ecc_mode: bool | None = None
    ecc_mode_pending: bool | None = None
    """The mode after the next reboot."""
    ecc_corrected_volatile: int | None = None
    """ECC errors since the driver was loaded that were corrected."""
    ecc_uncorrected_volatile: int | None = None
    """ECC errors since the driver was loaded that were not."""
    ecc_corrected_aggregate: int | None = None
    """The same over the GPU's life."""
    ecc_uncorrected_aggregate: int | None = None
    sram_threshold_exceeded: bool | None = None
    """Whether uncorrected SRAM errors are over NVIDIA's threshold for replacement."""
    retired_pages_single_bit: int | None = None
    """Pages retired for several single bit errors (before Ampere)."""
    retired_pages_double_bit: int | None = None
    """Pages retired for a double bit error (before Ampere)."""
    retired_pages_pending: bool | None = None
    """Whether pages wait for a reboot to be retired."""
    remapped_rows_correctable: int | None = None
    """Rows remapped for correctable errors (Ampere and later)."""
    remapped_rows_uncorrectable: int | None = None
    remapped_rows_pending: bool | None = None
    """Whether rows wait for a reset to be remapped."""
    remapped_rows_failure: bool | None = None
    """Whether a row could not be remapped."""
    recovery_action: RecoveryAction | None = None

    temperature_c: int | None = None
    """Of the GPU, in degrees Celsius."""
    temperature_slowdown_c: int | None = None
    """Where it slows itself down; older families and some drivers only."""
    temperature_shutdown_c: int | None = None
    """Where it shuts itself down; older families and some drivers only."""
    temperature_margin_c: int | None = None
    """T.Limit: degrees left until it throttles; newer families."""
    temperature_slowdown_margin_c: int | None = None
    """Margin at which it slows itself down: zero or negative, an offset and no temperature."""
    temperature_shutdown_margin_c: int | None = None
    """Margin at which it shuts itself down: negative, an offset and no temperature."""
    fan_speed_percent: int | None = None
    power_draw_w: float | None = None
    enforced_power_limit_w: float | None = None
    """The lowest of all power limits that are in force."""
    default_power_limit_w: float | None = None
    """The limit that the GPU has from the factory."""
    clock_sm_mhz: int | None = None
    clock_sm_max_mhz: int | None = None
    clock_memory_mhz: int | None = None
    clock_memory_max_mhz: int | None = None
    clock_event_reasons: tuple[int, ...] | None = None
    """Why the clocks are not higher (nvidia-smi's "Clocks Event Reasons", once "Throttle Reasons"): bit masks,
    one a reading, in order of time; ``EVENT_...`` are the bits. A bit that is not in every reading came and went."""
    utilization_gpu_percent: int | None = None
    """Share of the last moments in which a kernel ran."""
    utilization_memory_percent: int | None = None
    """Share of the last moments in which memory was read or written."""

    nvlinks: tuple[NvLink, ...] | None = None
    """Its NVLinks by index; None with NVML_ERROR_NOT_SUPPORTED where the GPU has none."""
    fabric_state: FabricState | None = None
    fabric_status: str | None = None
    """How the registration ended: ``success``, or the name of the NVML error."""
    virtualization_mode: VirtualizationMode | None = None
    addressing_mode: AddressingMode | None = None
    cpu_affinity: tuple[int, ...] | None = None
    """Logical processors near the GPU."""
    numa_affinity: tuple[int, ...] | None = None
    """NUMA nodes near the GPU (``topo -m``'s column "NUMA Affinity")."""
    gpu_numa_id: int | None = None
    """NUMA node that the GPU's own memory is (``topo -m``'s "GPU NUMA ID"); most machines have none."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Field name to the name of the NVML error that its call returned."""

    @property
    def subject(self) -> str:
        """The GPU's name in reports: index and bus id."""
        return f"GPU {self.index} ({self.bus_id})" if self.bus_id else f"GPU {self.index}"


@dataclass(frozen=True, kw_only=True)
class GpuPair:
    """Two GPUs: their nearest common ancestor, and how they may reach each other."""

    first: int
    second: int
    level: TopologyLevel | None
    """None where the driver did not say."""
    error: str | None = None
    """The NVML error's name, where ``level`` is None."""
    nvlinks: int | None = None
    """Active NVLinks between them, direct or through switches (``NV18``); 0 where none is active. None with
    NVML_ERROR_NOT_SUPPORTED in ``errors`` where one of them has no NVLink at all."""
    p2p_read: P2pStatus | None = None
    p2p_write: P2pStatus | None = None
    p2p_nvlink: P2pStatus | None = None
    errors: Mapping[str, str] = field(default_factory=dict)
    """Name of a further field (not of ``level``) to the name of the NVML error."""

    @property
    def subject(self) -> str:
        """The pair's name in reports."""
        return f"GPU {self.first} - GPU {self.second}"


NvmlState = Literal["ready", "library-absent", "driver-not-loaded", "library-mismatch", "no-permission", "failed"]


@dataclass(frozen=True, kw_only=True)
class Gpus(FactGroup):
    """The driver and its GPUs, through NVML."""

    group: ClassVar[str] = "gpus"

    state: NvmlState
    """Whether NVML could be initialised, and if not, why."""
    error: str | None = None
    """NVML's or the loader's own words, where ``state`` is not ``ready``."""
    driver_version: str | None = None
    """Version of the driver's user-space library."""
    cuda_driver_version: str | None = None
    """Highest CUDA release that the driver supports, ``major.minor``; not the toolkit's version."""
    count: int | None = None
    """NVML's device count; more than ``len(devices)`` where a GPU could not be opened."""
    devices: tuple[Gpu, ...] = ()
    """In order of index; a GPU that could not be opened has only its index and its errors."""
    pairs: tuple[GpuPair, ...] = ()
    """Each unordered pair once."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Errors of calls that concern no single GPU: field name to the error's name."""
    nvml_version: str | None = None
    """Version of NVML's interface, which leads the driver's: ``12.570.158.01``."""
    conf_compute: bool | None = None
    """Whether confidential computing is on."""
    conf_compute_multi_gpu: MultiGpuMode | None = None
    """How several GPUs may work together under it."""
    conf_compute_ready: bool | None = None
    """Whether the GPUs take work under it."""
    node_errors: Mapping[str, str] | None = None
    """Device nodes (/dev/nvidia*) that could not be opened for reading and writing, and the system's error name
    (``EPERM`` where a control group forbids what the file's mode allows); None where that was not tried."""
