"""Builders of the group ``gpus``: GPUs as reported by NVML (H100 SXM5, GeForce RTX 4090, V100), and their driver."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from helpers.facts.base import MIB
from kdoctor.facts import Gpu, GpuPair, Gpus, NvLink
from kdoctor.testing import healthy

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
    "fabric_problems",
    "channel_repair_pending",
    "tpc_repair_pending",
    "unrepairable_memory",
)
"""What a GeForce RTX 4090 does not support; its ECC is off."""
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
    "fabric_problems",
    "channel_repair_pending",
    "tpc_repair_pending",
    "unrepairable_memory",
    "gpu_numa_id",
)
"""What a V100 does not support."""


def bus_id(index: int) -> str:
    """A sysfs PCI address: GPU 0 is 0000:10:00.0, GPU 1 is 0000:20:00.0, ..."""
    return f"0000:{(index + 1) * 16:02x}:00.0"


def gpu(index: int = 0, **changes: Any) -> Gpu:
    """One idle H100 SXM5 at full link width."""
    place: dict[str, Any] = {
        "index": index,
        "minor_number": index,
        "uuid": f"GPU-{index:08x}-1111-2222-3333-444444444444",
        "bus_id": bus_id(index),
        "cpu_affinity": near(index),
        "numa_affinity": (index // 4,),
        "answers_s": 0.04,
    }
    return replace(healthy(Gpus).devices[0], **{**place, **changes})


def nvlinks(count: int = 18, *, down: Sequence[int] = (), **changes: Any) -> tuple[NvLink, ...]:
    """The NVLinks of an H100 to NVSwitches. Those in ``down`` are inactive."""
    first, *_ = healthy(Gpus).devices[0].nvlinks or ()
    return tuple(
        NvLink(index=index, active=False) if index in down else replace(first, index=index, **changes)
        for index in range(count)
    )


def near(index: int) -> tuple[int, ...]:
    """The CPUs near a GPU: the first half of 224 for the first four GPUs, the second half for the others."""
    return tuple(range(112)) if index < 4 else tuple(range(112, 224))


def geforce(index: int = 0, model: str = "4090", **changes: Any) -> Gpu:
    """One idle RTX 4090, without the features such a card lacks."""
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
    """A driver with n GeForce cards without peer access."""
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
    """A GPU that has fallen off the bus. NVML returns only an error for its handle."""
    return Gpu(index=index, errors={"handle": "GpuIsLost"})


def v100(index: int = 0, **changes: Any) -> Gpu:
    """One of four V100 in a workstation, with a fan and direct NVLinks."""
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


def gpus(n: int = 8, *devices: Gpu, **changes: Any) -> Gpus:
    """A responding driver with n healthy GPUs (or the given ones) on one NUMA node."""
    listed = devices or tuple(gpu(index) for index in range(n))
    pairs = tuple(pair(a.index, b.index) for a, b in combinations(listed, 2))
    return healthy(Gpus, **{"count": len(listed), "devices": listed, "pairs": pairs, **changes})


def pair(first: int = 0, second: int = 1, **changes: Any) -> GpuPair:
    """Two H100 connected by eighteen NVLinks."""
    return replace(healthy(Gpus).pairs[0], first=first, second=second, **changes)
