"""Builds the stand-in for NVIDIA's management library (tests/helpers/nvml/nvml.c) and describes machines to it.

``Machine`` is a table of ``key value`` lines; nvml.c says which keys there are. Builders below give whole machines,
and every fact can be overridden: ``Machine.of(l4(), l4(pcie_width=1)).order("nvmlDeviceGetName", NOT_SUPPORTED)``.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Mapping
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
    """Compile the library into the folder; return the folder, for LD_LIBRARY_PATH.

    Skips the test where there is no C compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler (cc, gcc) to build the stand-in for NVML")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    output = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, *flags, *(f"-D{name}" for name in defines), "-o", output, SOURCE], check=True)
    return folder


class Machine:
    """A machine description for the stand-in."""

    def __init__(self, lines: Mapping[str, str | int]) -> None:
        self._lines = dict(lines)

    @classmethod
    def of(cls, *gpus: Facts, level: int = PHB, driver: str = "570.158.01", cuda: int = 12080) -> Machine:
        """A driver with these GPUs, all pairs at one topology level. Bus ids and UUIDs are filled in."""
        lines: dict[str, str | int] = {
            "system.driver_version": driver,
            "system.cuda_driver_version": cuda,
            "system.count": len(gpus),
        }
        for index, facts in enumerate(gpus):
            own: Facts = {"bus_id": nvml_bus_id(index), "uuid": uuid(index)}
            lines |= {f"gpu.{index}.{name}": value for name, value in (own | facts).items()}
        for first, second in itertools.combinations(range(len(gpus)), 2):
            lines[f"pair.{first}.{second}.level"] = level
        return cls(lines)

    def with_lines(self, **lines: str | int) -> Machine:
        """The same with further lines; ``__`` in a key stands for a dot."""
        return Machine(self._lines | {key.replace("__", "."): value for key, value in lines.items()})

    def pair(self, first: int, second: int, level: int) -> Machine:
        """The same with two GPUs at another topology level."""
        return Machine(self._lines | {f"pair.{first}.{second}.level": level})

    def order(self, function: str, order: Order, *, gpu: int | None = None) -> Machine:
        """The same with a call that returns an error code, hangs or crashes; ``*`` is every call about a GPU."""
        prefix = "" if gpu is None else f"gpu.{gpu}."
        return Machine(self._lines | {f"{prefix}call.{function}": order})

    def write(self, path: Path) -> dict[str, str]:
        """Write the description; return the variable that names it."""
        path.write_text("".join(f"{key} {value}\n" for key, value in self._lines.items()), encoding="utf-8")
        return {VARIABLE: str(path)}


def nvml_bus_id(index: int) -> str:
    """Bus id in NVML's form: eight digits of domain, upper case."""
    return f"00000000:{0x1B + index * 0x10:02X}:00.0"


def uuid(index: int) -> str:
    return f"GPU-{index:08x}-0000-4000-8000-000000000000"


def l4(**changes: str | int) -> Facts:
    """An L4: Ada, PCIe only, 23034 MiB, generation 4 x16."""
    facts: Facts = {
        "name": "NVIDIA L4",
        "compute_capability": "8.9",
        "memory_total": 23034 * 1024**2,
        "memory_used": 1024**2,
        "memory_reserved": 433 * 1024**2,
        "pcie_generation": 4,
        "pcie_generation_max": 4,
        "pcie_width": 16,
        "pcie_width_max": 16,
        "performance_state": 0,
    }
    return facts | changes


def h100(**changes: str | int) -> Facts:
    """An H100 SXM5: 81559 MiB, generation 5 x16."""
    facts: Facts = {
        "name": "NVIDIA H100 80GB HBM3",
        "compute_capability": "9.0",
        "memory_total": 81559 * 1024**2,
        "memory_used": 4 * 1024**2,
        "memory_reserved": 551 * 1024**2,
        "pcie_generation": 5,
        "pcie_generation_max": 5,
        "pcie_width": 16,
        "pcie_width_max": 16,
        "performance_state": 0,
    }
    return facts | changes


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
    """Two L4, of which one fell off the bus: its handle cannot be had."""
    return two_l4().order("*", GPU_IS_LOST, gpu=lost)


def driver_not_loaded() -> Machine:
    """The library is installed, the kernel module is not loaded."""
    return Machine({}).order("nvmlInit", DRIVER_NOT_LOADED)


def library_mismatch() -> Machine:
    """The driver's packages were upgraded, the old kernel module still runs."""
    return Machine({}).order("nvmlInit", LIB_RM_VERSION_MISMATCH)


def permission_denied() -> Machine:
    """The device nodes may not be opened."""
    return Machine({}).order("nvmlInit", NO_PERMISSION)


def nothing_supported() -> Machine:
    """Two GPUs that can be opened and then answer every call with "not supported"."""
    return two_l4().order("*", NOT_SUPPORTED).order("nvmlDeviceGetHandleByIndex_v2", 0)
