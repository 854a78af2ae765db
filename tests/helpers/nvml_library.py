"""Build the fake NVML (tests/helpers/nvml/nvml.c) and describe machines to it.

``Machine`` is a table of ``key value`` lines; nvml.c documents the keys. The builders below return whole machines,
and every fact can be overridden: ``Machine.of(l4(), l4(pcie_width=1)).order("nvmlDeviceGetName", NOT_SUPPORTED)``.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "nvml" / "nvml.c"
VARIABLE = "KDOCTOR_NVML_MACHINE"

NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND = 3, 4, 9, 12, 13
GPU_IS_LOST, OPERATING_SYSTEM, LIB_RM_VERSION_MISMATCH, UNKNOWN = 15, 17, 18, 999
HANG, CRASH = "hang", "crash"

PIX, PXB, PHB, NODE, SYS = 10, 20, 30, 40, 50

Facts = dict[str, "str | int"]
Order = int | str


def build(folder: Path, *defines: str) -> Path:
    """Compile the library into the folder, and return the folder for LD_LIBRARY_PATH.

    Skips the test without a C compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler (cc, gcc) to build the fake NVML")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    output = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, *flags, *(f"-D{name}" for name in defines), "-o", output, SOURCE], check=True)
    return folder


def while_there(path: Path, one: str | int, other: str | int) -> str:
    """A value or an order that is ``one`` while the file exists, and ``other`` after that."""
    return f"?{path} {one} {other}"


class Machine:
    """A machine description for the fake NVML."""

    def __init__(self, lines: Mapping[str, str | int]) -> None:
        self._lines = dict(lines)

    @classmethod
    def of(cls, *gpus: Facts, level: int = PHB, driver: str = "570.158.01", cuda: int = 12080) -> Machine:
        """A driver with these GPUs, all pairs at one topology level. Bus ids and UUIDs are filled in."""
        lines: dict[str, str | int] = {
            "system.driver_version": driver,
            "system.cuda_driver_version": cuda,
            "system.nvml_version": f"{cuda // 1000}.{driver}",
            "system.conf_compute": 0,
            "system.conf_compute_multi_gpu": 0,
            "system.conf_compute_ready": 1,
            "system.count": len(gpus),
            "pair.*.p2p_read": 0,
            "pair.*.p2p_write": 0,
            "pair.*.p2p_nvlink": 0 if all("nvlinks" in facts for facts in gpus) else 5,
        }
        for index, facts in enumerate(gpus):
            own: Facts = {"bus_id": nvml_bus_id(index), "uuid": uuid(index), "minor_number": index}
            lines |= {f"gpu.{index}.{name}": value for name, value in (own | facts).items()}
        for first, second in itertools.combinations(range(len(gpus)), 2):
            lines[f"pair.{first}.{second}.level"] = level
        return cls(lines)

    def with_lines(self, **lines: str | int) -> Machine:
        """The same with more lines. Use ``__`` for a dot in a key."""
        return Machine(self._lines | {key.replace("__", "."): value for key, value in lines.items()})

    def also(self, lines: Mapping[str, str | int]) -> Machine:
        """The same with these lines."""
        return Machine(self._lines | dict(lines))

    def pair(self, first: int, second: int, level: int) -> Machine:
        """The same with two GPUs at another topology level."""
        return Machine(self._lines | {f"pair.{first}.{second}.level": level})

    def order(self, function: str, order: Order, *, gpu: int | None = None) -> Machine:
        """The same with a call that returns an error code, hangs or crashes. ``*`` is every call for a GPU."""
        prefix = "" if gpu is None else f"gpu.{gpu}."
        return Machine(self._lines | {f"{prefix}call.{function}": order})

    def slow(self, microseconds: int) -> Machine:
        """The same with a latency for every call."""
        return Machine(self._lines | {"latency_us": microseconds})

    def write(self, path: Path) -> dict[str, str]:
        """Write the description, and return the environment variable with its path."""
        path.write_text("".join(f"{key} {value}\n" for key, value in self._lines.items()), encoding="utf-8")
        return {VARIABLE: str(path)}


def nvml_bus_id(index: int) -> str:
    """Bus id in NVML's form: eight digits of domain, upper case."""
    return f"00000000:{0x1B + index * 0x10:02X}:00.0"


def uuid(index: int) -> str:
    return f"GPU-{index:08x}-0000-4000-8000-000000000000"


_IDLE: Facts = {
    "performance_state": 0,
    "pcie_width": 16,
    "pcie_width_max": 16,
    "pcie_replay_counter": 0,
    "compute_mode": 0,
    "persistence_mode": 1,
    "temperature": 41,
    "clock_event_reasons": "0x1",
    "utilization_gpu": 0,
    "utilization_memory": 0,
    "virtualization_mode": 0,
    "addressing_mode": 0,
    "field.230": 0,
}
"""Facts of every idle, healthy GPU."""

_ECC: Facts = {
    "ecc_mode": 1,
    "ecc_mode_pending": 1,
    "ecc_corrected_volatile": 0,
    "ecc_uncorrected_volatile": 0,
    "ecc_corrected_aggregate": 0,
    "ecc_uncorrected_aggregate": 0,
}
_ROWS: Facts = {
    "sram_threshold_exceeded": 0,
    "remapped_rows_correctable": 0,
    "remapped_rows_uncorrectable": 0,
    "remapped_rows_pending": 0,
    "remapped_rows_failure": 0,
}
"""Ampere and later, with ECC memory."""
_T_LIMIT: Facts = {"temperature_margin": 46, "field.193": -8, "field.194": -2}
"""Thresholds of Ada and Hopper are offsets, as nvidia-smi shows them on an H100 with driver 590."""


def _model(
    name: str, *, capability: str, architecture: int, memory_mib: int, generation: int, watts: int, sm: int, memory: int
) -> Facts:
    """The facts that depend on the model."""
    return {
        "name": name,
        "compute_capability": capability,
        "architecture": architecture,
        "memory_total": memory_mib * 1024**2,
        "memory_used": 1024**2,
        "memory_reserved": 433 * 1024**2,
        "bar1_total": 32768 * 1024**2,
        "pcie_generation": generation,
        "pcie_generation_max": generation,
        "pcie_generation_gpu_max": generation,
        "power_draw": watts * 100,
        "enforced_power_limit": watts * 1000,
        "default_power_limit": watts * 1000,
        "clock_sm": sm // 5,
        "clock_sm_max": sm,
        "clock_memory": memory,
        "clock_memory_max": memory,
    }


def l4(**changes: str | int) -> Facts:
    """An L4: Ada, PCIe only, 23034 MiB, generation 4 x16."""
    model = _model(
        "NVIDIA L4", capability="8.9", architecture=8, memory_mib=23034, generation=4, watts=72, sm=2040, memory=6251
    )
    return _IDLE | model | _ECC | _ROWS | _T_LIMIT | {"mig_mode": "-"} | changes


def h100(**changes: str | int) -> Facts:
    """An H100 SXM5: 81559 MiB, generation 5 x16, eighteen NVLinks into four NVSwitches, some PCIe replays."""
    model = _model(
        "NVIDIA H100 80GB HBM3",
        capability="9.0",
        architecture=9,
        memory_mib=81559,
        generation=5,
        watts=700,
        sm=1980,
        memory=2619,
    )
    own: Facts = {
        "memory_used": 4 * 1024**2,
        "memory_reserved": 551 * 1024**2,
        "bar1_total": 131072 * 1024**2,
        "pcie_replay_counter": 43,
        "mig_mode": 0,
        "mig_mode_pending": 0,
        "fabric_state": 3,
        "fabric_status": 0,
        **switched_links(18, version=6, mbps=26562),
    }
    return _IDLE | model | _ECC | _ROWS | _T_LIMIT | own | changes


def a100(**changes: str | int) -> Facts:
    """An A100 of 80 GB without its NVLinks: absolute thresholds, MIG off."""
    model = _model(
        "NVIDIA A100-SXM4-80GB",
        capability="8.0",
        architecture=7,
        memory_mib=81920,
        generation=4,
        watts=400,
        sm=1410,
        memory=1593,
    )
    own: Facts = {
        "bar1_total": 131072 * 1024**2,
        "mig_mode": 0,
        "mig_mode_pending": 0,
        "temperature_slowdown": 89,
        "temperature_shutdown": 92,
    }
    return _IDLE | model | _ECC | _ROWS | own | changes


def rtx4090(**changes: str | int) -> Facts:
    """An idle GeForce RTX 4090: its link at generation 1, no ECC counters, yet row remapping answers."""
    model = _model(
        "NVIDIA GeForce RTX 4090",
        capability="8.9",
        architecture=8,
        memory_mib=24564,
        generation=4,
        watts=450,
        sm=3105,
        memory=10501,
    )
    own: Facts = {"performance_state": 8, "pcie_generation": 1, "fan_speed": 0, "clock_memory": 405}
    return _IDLE | model | _ROWS | _T_LIMIT | own | {"sram_threshold_exceeded": "-"} | changes


def rtx5090(**changes: str | int) -> Facts:
    """An idle GeForce RTX 5090: Blackwell, generation 5, its link at generation 1."""
    model = _model(
        "NVIDIA GeForce RTX 5090",
        capability="12.0",
        architecture=10,
        memory_mib=32607,
        generation=5,
        watts=575,
        sm=3090,
        memory=14001,
    )
    own: Facts = {"performance_state": 8, "pcie_generation": 1, "fan_speed": 30, "clock_memory": 405}
    return _IDLE | model | _T_LIMIT | own | changes


def switched_links(count: int, *, version: int, mbps: int) -> Facts:
    """NVLinks to NVSwitches. ``version`` is the number of ``NVML_NVLINK_VERSION_...``."""
    return {
        "nvlinks": count,
        "nvlink_count": count,
        "nvlink.*.active": 1,
        "nvlink.*.version": version,
        "nvlink.*.speed_mbps": mbps,
        "nvlink.*.remote_type": 2,
        **{f"nvlink.{link}.remote_bus_id": f"00000000:{0x83 + link % 4:02X}:00.0" for link in range(count)},
    }


def direct_links(peers: Sequence[str], *, each: int, version: int, mbps: int) -> Facts:
    """Direct NVLinks to other GPUs: ``each`` links per bus id in ``peers`` (in NVML's form)."""
    count = each * len(peers)
    return {
        **switched_links(count, version=version, mbps=mbps),
        "nvlink.*.remote_type": 0,
        **{f"nvlink.{link}.remote_bus_id": peers[link // each] for link in range(count)},
    }


def two_l4() -> Machine:
    """Two idle L4 below one host bridge."""
    return Machine.of(l4(), l4())


def eight_h100() -> Machine:
    """Eight H100, four a socket: NODE within a socket, SYS across."""
    machine = Machine.of(*(h100() for _ in range(8)), level=NODE, driver="535.161.08", cuda=12020)
    for first, second in itertools.product(range(4), range(4, 8)):
        machine = machine.pair(first, second, SYS)
    return machine


def one_gpu_lost(lost: int = 1) -> Machine:
    """Two L4. One has fallen off the bus, so that NVML returns no handle for it."""
    return two_l4().order("*", GPU_IS_LOST, gpu=lost)


def driver_not_loaded() -> Machine:
    """The library is installed, but the kernel module is not loaded."""
    return Machine({}).order("nvmlInit", DRIVER_NOT_LOADED)


def library_mismatch() -> Machine:
    """The driver packages were upgraded, but the old kernel module is still loaded."""
    return Machine({}).order("nvmlInit", LIB_RM_VERSION_MISMATCH)


def permission_denied() -> Machine:
    """The user has no permission for the device nodes."""
    return Machine({}).order("nvmlInit", NO_PERMISSION)


def nothing_supported() -> Machine:
    """Two GPUs that return "not supported" for every call except the one for the handle."""
    return two_l4().order("*", NOT_SUPPORTED).order("nvmlDeviceGetHandleByIndex_v2", 0)
