"""Builders of healthy fact groups. Every value can be overridden by keyword.

``compute_check(check, *h100_node(), host(shm_total_bytes=64 * MIB))``: of two groups of one type the later counts.
The numbers are those of real machines: driver, names, capabilities, lanes and P-states as NVML gives them on an
H100 SXM5 node, and the packages of a fresh ``tensorflow[and-cuda]==2.21.0``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from kdoctor.collect.kernel_log import parse_log
from kdoctor.facts import (
    DeviceNode,
    Disk,
    Environment,
    FactGroup,
    Gpu,
    GpuPair,
    Gpus,
    Host,
    KerasChoice,
    Kernel,
    KernelDriver,
    KernelLog,
    KernelLogEvent,
    NumaNode,
    NvLink,
    Package,
    Packages,
    PciBridge,
    PciDevice,
    PciDevices,
    ResourceLimit,
    SmokeCase,
    SmokeRun,
    Target,
    TensorFlowBuild,
    Weights,
    canonical_name,
)

KIB, MIB, GIB = 1024, 1024**2, 1024**3
DRIVER = "580.105.08"
PYTHON = "/opt/job/bin/python"
SITE = "/opt/job/lib/python3.11/site-packages"


NOT_SUPPORTED = "NVML_ERROR_NOT_SUPPORTED"
H100_LACKS = (
    "retired_pages_single_bit",
    "retired_pages_double_bit",
    "retired_pages_pending",
    "temperature_slowdown_c",
    "temperature_shutdown_c",
    "fan_speed_percent",
    "gpu_numa_id",
)
"""What an H100 SXM5 does not support."""
GEFORCE_LACKS = (
    "mig_mode",
    "mig_mode_pending",
    "ecc_corrected_volatile",
    "ecc_uncorrected_volatile",
    "ecc_corrected_aggregate",
    "ecc_uncorrected_aggregate",
    "sram_threshold_exceeded",
    "retired_pages_single_bit",
    "retired_pages_double_bit",
    "retired_pages_pending",
    "nvlinks",
    "fabric_state",
    "fabric_status",
)
"""What a GeForce RTX 4090 does not support; its ECC is off."""


def bus_id(index: int) -> str:
    """A sysfs PCI address: GPU 0 is 0000:10:00.0, GPU 1 is 0000:20:00.0, ..."""
    return f"0000:{(index + 1) * 16:02x}:00.0"


def gpu(index: int = 0, **changes: Any) -> Gpu:
    """One idle H100 SXM5 at full link width."""
    values: dict[str, Any] = {
        "index": index,
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": f"GPU-{index:08x}-1111-2222-3333-444444444444",
        "bus_id": bus_id(index),
        "compute_capability": "9.0",
        "memory_total_bytes": 81559 * MIB,
        "memory_used_bytes": 4 * MIB,
        "processes": (),
        "pcie_generation": 5,
        "pcie_generation_max": 5,
        "pcie_width": 16,
        "pcie_width_max": 16,
        "performance_state": 0,
        "architecture": "Hopper",
        "minor_number": index,
        "pcie_generation_gpu_max": 5,
        "pcie_replay_counter": 43,
        "bar1_total_bytes": 131072 * MIB,
        "compute_mode": "default",
        "persistence_mode": True,
        "mig_mode": False,
        "mig_mode_pending": False,
        "ecc_mode": True,
        "ecc_mode_pending": True,
        "ecc_corrected_volatile": 0,
        "ecc_uncorrected_volatile": 0,
        "ecc_corrected_aggregate": 0,
        "ecc_uncorrected_aggregate": 0,
        "sram_threshold_exceeded": False,
        "remapped_rows_correctable": 0,
        "remapped_rows_uncorrectable": 0,
        "remapped_rows_pending": False,
        "remapped_rows_failure": False,
        "recovery_action": "none",
        "temperature_c": 34,
        "temperature_margin_c": 51,
        "temperature_slowdown_margin_c": -2,
        "temperature_shutdown_margin_c": -8,
        "power_draw_w": 71.0,
        "enforced_power_limit_w": 700.0,
        "default_power_limit_w": 700.0,
        "clock_sm_mhz": 345,
        "clock_sm_max_mhz": 1980,
        "clock_memory_mhz": 2619,
        "clock_memory_max_mhz": 2619,
        "clock_event_reasons": (1, 1, 1),
        "utilization_gpu_percent": 0,
        "utilization_memory_percent": 0,
        "nvlinks": nvlinks(),
        "fabric_state": "completed",
        "fabric_status": "success",
        "virtualization_mode": "none",
        "addressing_mode": "none",
        "cpu_affinity": near(index),
        "numa_affinity": (index // 4,),
        "errors": dict.fromkeys(H100_LACKS, NOT_SUPPORTED),
    }
    return Gpu(**{**values, **changes})


def nvlinks(count: int = 18, *, down: Sequence[int] = (), **changes: Any) -> tuple[NvLink, ...]:
    """The NVLinks of an H100 into NVSwitches; those in ``down`` are not active."""
    values: dict[str, Any] = {"active": True, "version": 4, "speed_gbs": 26.562, "remote_kind": "switch"}
    return tuple(
        NvLink(index=index, active=False) if index in down else NvLink(index=index, **{**values, **changes})
        for index in range(count)
    )


def near(index: int) -> tuple[int, ...]:
    """The processors near a GPU: half of 224 for the first four, the other half for the others."""
    return tuple(range(112)) if index < 4 else tuple(range(112, 224))


def geforce(index: int = 0, model: str = "4090", **changes: Any) -> Gpu:
    """One idle RTX 4090, with what such a card does not have."""
    values: dict[str, Any] = {
        "name": f"NVIDIA GeForce RTX {model}",
        "compute_capability": "8.9",
        "architecture": "Ada Lovelace",
        "memory_total_bytes": 24564 * MIB,
        "bar1_total_bytes": 32768 * MIB,
        "pcie_generation": 1,
        "pcie_generation_max": 4,
        "pcie_generation_gpu_max": 4,
        "performance_state": 8,
        "ecc_mode": False,
        "ecc_mode_pending": False,
        "fan_speed_percent": 0,
        "enforced_power_limit_w": 450.0,
        "default_power_limit_w": 450.0,
        "clock_sm_mhz": 210,
        "clock_sm_max_mhz": 3105,
        "clock_memory_mhz": 405,
        "clock_memory_max_mhz": 10501,
    }
    lacks = dict.fromkeys(GEFORCE_LACKS)
    errors = {"errors": dict.fromkeys((*GEFORCE_LACKS, "gpu_numa_id"), NOT_SUPPORTED)}
    return gpu(index, **{**values, **lacks, **errors, **changes})


def geforces(n: int = 2, **changes: Any) -> Gpus:
    """A driver with n GeForce cards, between which there is no peer access."""
    devices = tuple(geforce(index) for index in range(n))
    pair: dict[str, Any] = {
        "level": "PHB",
        "errors": {"nvlinks": NOT_SUPPORTED},
        "p2p_read": "GNS",
        "p2p_write": "GNS",
        "p2p_nvlink": "NS",
    }
    pairs = tuple(GpuPair(first=a.index, second=b.index, **pair) for a, b in combinations(devices, 2))
    return gpus(n, *devices, **{"pairs": pairs, **changes})


def lost_gpu(index: int) -> Gpu:
    """A GPU that fell off the bus: NVML gives an error for its handle and nothing else."""
    return Gpu(index=index, errors={"handle": "GpuIsLost"})


def gpus(n: int = 8, *devices: Gpu, **changes: Any) -> Gpus:
    """A driver that answers, with n healthy GPUs (or the given ones), all pairs below one NUMA node."""
    listed = devices or tuple(gpu(index) for index in range(n))
    values: dict[str, Any] = {
        "state": "ready",
        "driver_version": DRIVER,
        "cuda_driver_version": "13.0",
        "count": len(listed),
        "devices": listed,
        "pairs": tuple(pair(a.index, b.index) for a, b in combinations(listed, 2)),
        "nvml_version": f"13.{DRIVER}",
        "conf_compute": False,
        "conf_compute_multi_gpu": "none",
        "conf_compute_ready": True,
        "node_errors": {},
    }
    return Gpus(**{**values, **changes})


def pair(first: int = 0, second: int = 1, **changes: Any) -> GpuPair:
    """Two H100 joined by eighteen NVLinks."""
    values: dict[str, Any] = {"level": "NODE", "nvlinks": 18, "p2p_read": "OK", "p2p_write": "OK", "p2p_nvlink": "OK"}
    return GpuPair(first=first, second=second, **{**values, **changes})


def bridge(bus_id: str, **changes: Any) -> PciBridge:
    """A port above a GPU: full width and speed, no ACS, no errors."""
    values: dict[str, Any] = {
        "bus_id": bus_id,
        "device_id": "c030",
        "vendor_id": "1000",
        "link_speed": "32.0 GT/s PCIe",
        "link_speed_max": "32.0 GT/s PCIe",
        "link_width": 16,
        "link_width_max": 16,
        "acs_control": 0,
        "aer_correctable": 0,
        "aer_nonfatal": 0,
        "aer_fatal": 0,
    }
    return PciBridge(**{**values, **changes})


def way(index: int, **changes: Any) -> tuple[PciBridge, ...]:
    """The root port and a switch's two ports, above GPU ``index``; changes are those of the switch's upper port."""
    bus = (index + 1) * 16
    root, upper, lower = (f"0000:{bus - above:02x}:00.0" for above in (4, 3, 2))
    return bridge(root), bridge(upper, **changes), bridge(lower)


def pci_gpu(index: int = 0, **changes: Any) -> PciDevice:
    """The PCI function of GPU ``index``."""
    values: dict[str, Any] = {
        "bus_id": bus_id(index),
        "device_id": "2330",
        "device_class": "0302",
        "driver": "nvidia",
        "link_speed": "32.0 GT/s PCIe",
        "link_speed_max": "32.0 GT/s PCIe",
        "link_width": 16,
        "link_width_max": 16,
        "numa_node": index // 4,
        "local_cpus": near(index),
        "path": way(index),
        "acs_control": 0,
        "aer_correctable": 0,
        "aer_nonfatal": 0,
        "aer_fatal": 0,
    }
    return PciDevice(**{**values, **changes})


def pci(n: int = 8, *devices: PciDevice) -> PciDevices:
    """The PCI functions of n GPUs (or the given ones), and an NVSwitch, which is no GPU."""
    switch = PciDevice(bus_id="0000:f0:00.0", device_id="22a3", device_class="0680", driver="nvidia-nvswitch")
    return PciDevices(devices=(*(devices or tuple(pci_gpu(index) for index in range(n))), switch))


def node(path: str, *, readable: bool = True, writable: bool = True) -> DeviceNode:
    """A device node, open to all unless said otherwise."""
    return DeviceNode(path=path, mode="0666" if readable and writable else "0660", readable=readable, writable=writable)


def kernel(n: int = 8, **changes: Any) -> KernelDriver:
    """A loaded nvidia module, with the device nodes of n GPUs."""
    paths = (*(f"/dev/nvidia{index}" for index in range(n)), "/dev/nvidia-uvm", "/dev/nvidiactl")
    values: dict[str, Any] = {
        "loaded": True,
        "version": DRIVER,
        "flavour": "open",
        "nodes": tuple(node(path) for path in paths),
    }
    return KernelDriver(**{**values, **changes})


def kernel_settings(**changes: Any) -> Kernel:
    """A kernel with the nvidia modules, no IOMMU, and the daemons of an NVSwitch machine."""
    values: dict[str, Any] = {
        "modules": ("nvidia", "nvidia_uvm"),
        "secure_boot": False,
        "lockdown": "none",
        "iommu_parameters": (),
        "iommu_groups": 0,
        "daemons": ("nv-fabricmanager", "nvidia-persistenced"),
    }
    return Kernel(**{**values, **changes})


def log(*events: KernelLogEvent, **changes: Any) -> KernelLog:
    """A kernel's log that reaches back to the boot; it tells of nothing unless given events."""
    values: dict[str, Any] = {"source": "/dev/kmsg", "lines": 2048, "complete": True, "events": events}
    return KernelLog(**{**values, **changes})


def logged(*lines: str) -> KernelLog:
    """What the real reader makes of these lines."""
    return parse_log(lines, source="dmesg.txt", complete=True)


def no_driver() -> tuple[FactGroup, ...]:
    """The GPU groups of a machine that has neither GPU nor driver."""
    return (
        PciDevices(devices=()),
        KernelDriver(loaded=False),
        Gpus(state="library-absent", error="libnvidia-ml.so.1: cannot open shared object file"),
    )


def host(**changes: Any) -> Host:
    """A bare Linux host with half its memory as /dev/shm."""
    values: dict[str, Any] = {
        "os": "Linux",
        "os_release": "Ubuntu 24.04.2 LTS",
        "kernel": "6.8.0-60-generic",
        "machine": "x86_64",
        "libc": "glibc 2.39",
        "cpus": 224,
        "cpu_affinity": tuple(range(224)),
        "memory_total_bytes": 2048 * GIB,
        "memory_available_bytes": 1990 * GIB,
        "shm_total_bytes": 1024 * GIB,
        "shm_free_bytes": 1024 * GIB,
        "container": "none",
        "limits": (
            ResourceLimit(name="memlock", soft=None, hard=None),
            ResourceLimit(name="nofile", soft=65536, hard=1048576),
        ),
        "cpu_limit": 224.0,
        "memory_nodes": (0, 1),
        "numa_nodes": tuple(NumaNode(index=node, cpus=near(4 * node), socket=node) for node in range(2)),
        "swap_total_bytes": 8 * GIB,
        "swap_used_bytes": 0,
        "cpu_governors": ("performance",),
        "transparent_hugepages": "madvise",
        "disks": (
            Disk(folder="working folder", total_bytes=1000 * GIB, free_bytes=500 * GIB),
            Disk(folder="temporary folder", total_bytes=100 * GIB, free_bytes=50 * GIB),
        ),
    }
    return Host(**{**values, **changes})


def target(**changes: Any) -> Target:
    """A virtual environment of CPython 3.11 on Linux."""
    values: dict[str, Any] = {
        "executable": PYTHON,
        "chosen_by": "active virtual environment",
        "version": "3.11.7",
        "implementation": "cpython",
        "environment": "venv",
        "prefix": "/opt/job",
        "base_prefix": "/usr",
        "platform": "linux-x86_64",
    }
    return Target(**{**values, **changes})


def package(name: str, version: str | None = "1.0", *requires: str, requires_python: str | None = None) -> Package:
    """One installed distribution and its requirements."""
    return Package(
        name=canonical_name(name),
        version=version,
        location=SITE,
        requires=requires,
        requires_python=requires_python,
        installer="pip",
    )


def packages(*installed: Package, has_pip: bool | None = True) -> Packages:
    """These distributions, or those of a small healthy TensorFlow 2.21 environment."""
    default = (
        package("keras", "3.15.1", "numpy", "h5py", "ml-dtypes", "packaging", requires_python=">=3.11"),
        package("h5py", "3.14.0", "numpy>=1.19.3"),
        package("ml-dtypes", "0.5.3", "numpy>=1.21"),
        package("numpy", "2.4.6"),
        package("packaging", "25.0"),
        package("protobuf", "7.36.2"),
        package(
            "tensorflow",
            "2.21.0",
            "packaging",
            "protobuf<8.0.0,>=6.31.1",
            "keras>=3.12.0",
            "numpy>=1.26.0",
            "h5py<3.15.0,>=3.11.0",
            "ml_dtypes<1.0.0,>=0.5.1",
            'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"',
            requires_python=">=3.10",
        ),
    )
    return Packages(installed=tuple(sorted(installed or default, key=lambda item: item.name)), has_pip=has_pip)


def tensorflow(**changes: Any) -> TensorFlowBuild:
    """TensorFlow 2.21.0 from its Linux wheel, as its build_info.py tells."""
    values: dict[str, Any] = {
        "installed": True,
        "distribution": "tensorflow",
        "version": "2.21.0",
        "location": f"{SITE}/tensorflow",
        "cuda_build": True,
        "cuda_version": "12.5.1",
        "cudnn_version": "9",
        "compute_capabilities": ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90"),
    }
    return TensorFlowBuild(**{**values, **changes})


def keras(**changes: Any) -> KerasChoice:
    """Keras 3.15.1 on the TensorFlow backend."""
    values: dict[str, Any] = {
        "package": "keras",
        "version": "3.15.1",
        "legacy": False,
        "backend": "tensorflow",
        "backend_from": "default",
    }
    return KerasChoice(**{**values, **changes})


def environment(**variables: str) -> Environment:
    """These variables and no others, of those that the probe looks for."""
    looked_for = ("CUDA_*", "KERAS_*", "LD_LIBRARY_PATH", "NCCL_*", "NVIDIA_*", "TF_*")
    return Environment(variables=variables, allow_list=looked_for)


def smoke_case(name: str = "mirrored", replicas: int = 8, kind: str = "GPU", **changes: Any) -> SmokeCase:
    """A training that went well over that many replicas."""
    values: dict[str, Any] = {
        "name": name,
        "outcome": "trained",
        "phase": "inspect",
        "strategy": "MirroredStrategy",
        "replicas": replicas,
        "devices": tuple(f"/job:localhost/replica:0/task:0/device:{kind}:{index}" for index in range(replicas)),
        "optimizer": "SGD",
        "examples": 64,
        "global_batch": 16,
        "final_batch": 16,
        "losses": (1.0, 0.5),
        "reference_losses": (1.0, 0.5),
        "weights": Weights(variables=6, mirrored=6, nonfinite=(), replicas_agree=True),
        "weight_deviation": 0.0,
        "build_s": 0.2,
        "first_step_s": 1.0,
        "step_s": 0.01,
        "peak_memory_bytes": 900 * MIB,
        "seconds": 3.0,
    }
    return SmokeCase(**{**values, **changes})


def smoke_run(scenario: str = "smoke.baseline", replicas: int = 8, *cases: SmokeCase, **changes: Any) -> SmokeRun:
    """A scenario whose cases (one healthy case unless given) ran on that many GPUs."""
    values: dict[str, Any] = {
        "scenario": scenario,
        "version": 1,
        "devices_kind": "gpu",
        "replicas_requested": replicas,
        "tensorflow": "2.21.0",
        "keras": "keras 3.15.1",
        "gpus_seen": replicas,
        "import_s": 3.3,
        "cases": cases or (smoke_case(replicas=replicas),),
        "seconds": 8.0,
    }
    return SmokeRun(**{**values, **changes})


def h100_node(n: int = 8) -> tuple[FactGroup, ...]:
    """Every group of a healthy machine with n H100 GPUs, its smoke.baseline run included."""
    from helpers.libraries import libraries

    return (
        target(),
        packages(),
        tensorflow(),
        keras(),
        gpus(n),
        pci(n),
        kernel(n),
        kernel_settings(),
        log(),
        environment(LD_LIBRARY_PATH=f"{SITE}/nvidia/cusolver/lib"),
        libraries(),
        host(),
        smoke_run(replicas=n),
    )


def cpu_host() -> tuple[FactGroup, ...]:
    """Every group of a healthy machine without a GPU; its smoke.baseline ran over two logical CPU devices."""
    from helpers.libraries import libraries, missing

    return (
        target(),
        packages(),
        tensorflow(),
        keras(),
        *no_driver(),
        kernel_settings(modules=(), daemons=()),
        log(),
        environment(),
        libraries(missing("cuda")),
        host(),
        smoke_run("smoke.baseline", 2, smoke_case(replicas=2, kind="CPU"), devices_kind="cpu", gpus_seen=0),
    )


V100_LACKS = (
    "remapped_rows_correctable",
    "remapped_rows_uncorrectable",
    "remapped_rows_pending",
    "remapped_rows_failure",
    "sram_threshold_exceeded",
    "recovery_action",
    "temperature_margin_c",
    "temperature_slowdown_margin_c",
    "temperature_shutdown_margin_c",
    "mig_mode",
    "mig_mode_pending",
    "fabric_state",
    "fabric_status",
    "gpu_numa_id",
)
"""What a V100 does not support."""


def v100(index: int = 0, **changes: Any) -> Gpu:
    """One of four V100 in a workstation, with a fan, joined directly by NVLinks."""
    values: dict[str, Any] = {
        "name": "Tesla V100-DGXS-32GB",
        "compute_capability": "7.0",
        "architecture": "Volta",
        "pcie_generation": 3,
        "pcie_generation_max": 3,
        "pcie_generation_gpu_max": 3,
        "memory_total_bytes": 32508 * MIB,
        "bar1_total_bytes": 32768 * MIB,
        "retired_pages_single_bit": 0,
        "retired_pages_double_bit": 0,
        "retired_pages_pending": False,
        "temperature_slowdown_c": 87,
        "temperature_shutdown_c": 90,
        "fan_speed_percent": 30,
        "nvlinks": nvlinks(6, version=2, speed_gbs=25.781, remote_kind="gpu"),
        "enforced_power_limit_w": 300.0,
        "default_power_limit_w": 300.0,
    }
    lacks: dict[str, Any] = dict.fromkeys(V100_LACKS)
    return gpu(index, **{**values, **lacks, "errors": dict.fromkeys(V100_LACKS, NOT_SUPPORTED), **changes})


def v100_workstation(n: int = 4) -> tuple[FactGroup, ...]:
    """The groups of a machine that differ from ``h100_node``'s: four V100 joined directly, below one socket."""
    devices = tuple(v100(index) for index in range(n))
    pairs = tuple(pair(a.index, b.index, level="PIX", nvlinks=2) for a, b in combinations(devices, 2))
    return gpus(n, *devices, pairs=pairs), pci(n), kernel(n)
