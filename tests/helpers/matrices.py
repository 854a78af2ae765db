"""A small version matrix whose every answer follows from its few rows, and a machine to judge."""

from pathlib import Path
from typing import Any

from kdoctor.matrix.cuda import CudaMajor, CudaRelease, CudnnSupport, ForwardCompatibility, PtxVersion
from kdoctor.matrix.gpus import NamedGpu
from kdoctor.matrix.kernels import Kernels
from kdoctor.matrix.model import GpuKind, KnownBad, Libraries, Nccl, Platform, Release, VersionMatrix

SOURCE = ("a test of the matrix",)
A100 = NamedGpu(name="A100", capability="8.0", data_center=True)
H100 = NamedGpu(name="H100", capability="9.0", data_center=True)
PTX_8_5 = Kernels(cubins=(80,), ptx=("80",), ptx_isa="8.5")


def release(version: str, **changes: Any) -> Release:
    """A release for CUDA 12.5 with machine code for 8.0, and PTX of its CUDA for newer GPUs."""
    values: dict[str, Any] = {
        "version": version,
        "python": ">=3.10,<3.13",
        "requires": ("keras>=3.10.0", "keras-preprocessing>=1.1", "numpy<2.2,>=1.26", "protobuf"),
        "and_cuda": ("nvidia-cudnn-cu12>=9.3",),
        "cuda": "12.5.1",
        "cudnn": "9.3",
        "cubins": (80,),
        "ptx": ("80",),
        "nccl": Nccl(linkage="static", version="2.25.1", basis="measured"),
        "glibc": "2.27",
        "runpath": ("cudnn",),
        "source": SOURCE,
    }
    return Release.model_validate({**values, **changes})


def bad(name: str, when: dict[str, str], **changes: Any) -> KnownBad:
    """A known-bad combination that crashes."""
    values: dict[str, Any] = {"id": name, "when": when, "effect": "crash", "symptom": "it crashes", "fix": "another"}
    return KnownBad.model_validate({**values, "source": SOURCE, **changes})


def small_matrix(*releases: Release, **changes: Any) -> VersionMatrix:
    """A matrix of these releases, oldest first. CUDA 12 needs driver 525.60.13, PTX of CUDA 12.5 needs 555.42.02."""
    values: dict[str, Any] = {
        "name": "the matrix of a test",
        "updated": "2026-01-01",
        "platform": "linux-x86_64",
        "releases": releases,
        "cuda_majors": (CudaMajor(major=12, oldest_driver="525.60.13", oldest_windows_driver="527.41", source=SOURCE),),
        "cuda_releases": (CudaRelease(release="12.5.0", driver="555.42.02", source=SOURCE),),
        "ptx_versions": (PtxVersion(isa="8.5", cuda="12.5", source=SOURCE),),
        "cudnn": (CudnnSupport(versions=">=9", cuda=12, capabilities=">=5.0", source=SOURCE),),
        "gpus": (
            GpuKind(capability="8.0", architecture="Ampere", data_center=("A100", "A30"), source=SOURCE),
            GpuKind(
                capability="9.0", architecture="Hopper", data_center=("H100",), oldest_driver="520.61", source=SOURCE
            ),
        ),
        "platforms": (
            Platform(platform="windows", wheels="<2.11", gpu="<2.11", windows_driver=True, source=SOURCE),
            Platform(platform="macos", wheels=">=2.13", advice=("Use it: python -m pip install x",), source=SOURCE),
        ),
        "forward_compatibility": (ForwardCompatibility(cuda="12.5", branches=(535,), source=SOURCE),),
        "libraries": (Libraries(cuda=12, sonames={"cudart": "libcudart.so.12"}, source=SOURCE),),
        "registering": ("cudnn",),
        "known_bad": (),
    }
    return VersionMatrix(**{**values, **changes})


def with_driver(root: Path, *models: str) -> Path:
    """A root folder with the files of a loaded driver and these GPUs."""
    driver = root / "proc/driver/nvidia"
    driver.mkdir(parents=True)
    (driver / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat\n")
    for at, model in enumerate(models):
        folder = driver / f"gpus/0000:{at}b:00.0"
        folder.mkdir(parents=True)
        (folder / "information").write_text(model)
    return root
