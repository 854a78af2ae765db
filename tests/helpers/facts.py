"""Builders of healthy fact groups. Every value can be overridden by keyword.

``compute_check(check, *h100_node(), host(shm_total_bytes=64 * MIB))``: of two groups of one type the later counts.
The numbers are those of real machines: driver, names, capabilities, lanes and P-states as NVML gives them on an
H100 SXM5 node, and the packages of a fresh ``tensorflow[and-cuda]==2.21.0``.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from kdoctor.facts import (
    DeviceNode,
    Environment,
    FactGroup,
    Gpu,
    GpuPair,
    Gpus,
    Host,
    KerasChoice,
    KernelDriver,
    Package,
    Packages,
    PciDevice,
    PciDevices,
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
    }
    return Gpu(**{**values, **changes})


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
        "pairs": tuple(GpuPair(first=a.index, second=b.index, level="NODE") for a, b in combinations(listed, 2)),
    }
    return Gpus(**{**values, **changes})


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
        "numa_node": 0,
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
    return Environment(variables=variables, allow_list=("CUDA_*", "KERAS_*", "NCCL_*", "NVIDIA_*", "TF_*"))


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
    return (
        target(),
        packages(),
        tensorflow(),
        keras(),
        gpus(n),
        pci(n),
        kernel(n),
        environment(),
        host(),
        smoke_run(replicas=n),
    )


def cpu_host() -> tuple[FactGroup, ...]:
    """Every group of a healthy machine without a GPU; its smoke.baseline ran over two logical CPU devices."""
    return (
        target(),
        packages(),
        tensorflow(),
        keras(),
        *no_driver(),
        environment(),
        host(),
        smoke_run("smoke.baseline", 2, smoke_case(replicas=2, kind="CPU"), devices_kind="cpu", gpus_seen=0),
    )
