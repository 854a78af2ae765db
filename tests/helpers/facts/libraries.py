"""Builders of the group ``libraries``: the libraries of a healthy ``tensorflow[and-cuda]==2.21.0`` with a driver.

That release does not search nvidia/cusolver/lib. The healthy job therefore has the folder on LD_LIBRARY_PATH.
"""

from typing import Any

from helpers.facts.base import DRIVER, SITE
from kdoctor.facts import FrameworkLibrary, Libraries, Library, SearchPlace, XlaFile

# Name to component, number in the soname, package, package version and library version. CUDA 12.9.1, cuDNN 9.24.0.
_WHEELS = {
    "cudart": ("cuda_runtime", "12", "nvidia-cuda-runtime-cu12", "12.9.79", "12.9"),
    "cublas": ("cublas", "12", "nvidia-cublas-cu12", "12.9.1.4", "12.9.1"),
    "cublasLt": ("cublas", "12", "nvidia-cublas-cu12", "12.9.1.4", "12.9.1"),
    "cufft": ("cufft", "11", "nvidia-cufft-cu12", "11.4.1.4", "11.4.1"),
    "cusolver": ("cusolver", "11", "nvidia-cusolver-cu12", "11.7.5.82", "11.7.5"),
    "cusparse": ("cusparse", "12", "nvidia-cusparse-cu12", "12.5.10.65", "12.5.10"),
    "cudnn": ("cudnn", "9", "nvidia-cudnn-cu12", "9.24.0.43", "9.24.0"),
    "nccl": ("nccl", "2", "nvidia-nccl-cu12", "2.27.7", "2.27.7"),
    "cupti": ("cuda_cupti", "12", "nvidia-cuda-cupti-cu12", "12.9.79", "28"),
}
_CODES = {"cudart": 12090, "cudnn": 92400, "nccl": 22707, "cupti": 28}
SOLVER_FOLDER = f"{SITE}/nvidia/cusolver/lib"
_PURPOSES = {"nccl": "several GPUs", "cupti": "profiling"}


def library(name: str, **changes: Any) -> Library:
    """One healthy library from its wheel, or libcuda from the driver."""
    if name == "cuda":
        folder, soname, package = "/usr/lib/x86_64-linux-gnu", "libcuda.so.1", (None, None, DRIVER)
    else:
        component, number, *package_and_versions = _WHEELS[name]
        folder, soname = f"{SITE}/nvidia/{component}/lib", f"lib{name}.so.{number}"
        package = tuple(package_and_versions)  # type: ignore[assignment]
    values: dict[str, Any] = {
        "name": name,
        "soname": soname,
        "needed_for": _PURPOSES.get(name, "every GPU"),
        "status": "found",
        "path": f"{folder}/{soname}",
        "real_path": f"{folder}/libcuda.so.{DRIVER}" if name == "cuda" else f"{folder}/{soname}",
        "found_by": {"cuda": "ld.so.cache", "cusolver": "LD_LIBRARY_PATH"}.get(name, "RUNPATH"),
        "package": package[0],
        "package_version": package[1],
        "version": package[2],
        "version_code": _CODES.get(name),
        "built_with": "12.9" if name == "cudnn" else None,
    }
    return Library(**{**values, **changes})


def missing(name: str, **changes: Any) -> Library:
    """The same library if the loader does not find it."""
    gone = dict.fromkeys(
        ("path", "real_path", "found_by", "version", "version_code", "built_with", "package", "package_version")
    )
    return library(name, status="missing", **{**gone, **changes})


def libraries(*changed: Library, **changes: Any) -> Libraries:
    """All ten libraries, healthy unless given."""
    given = {entry.name: entry for entry in changed}
    listed = tuple(given.get(name) or library(name) for name in ("cuda", *_WHEELS))
    components = dict.fromkeys(component for component, *_ in _WHEELS.values() if component != "cusolver")
    nvcc: dict[str, Any] = {
        "package": "nvidia-cuda-nvcc-cu12",
        "package_version": "12.9.86",
        "found_by": "nvidia wheel",
    }
    root = f"{SITE}/nvidia/cuda_nvcc"
    values: dict[str, Any] = {
        "cuda_build": True,
        "opener": f"{SITE}/tensorflow/libtensorflow_framework.so.2",
        "path_kind": "RUNPATH",
        "runpath": tuple(f"$ORIGIN/../nvidia/{component}/lib" for component in components),
        "searched": (
            SearchPlace(found_by="LD_LIBRARY_PATH", path=SOLVER_FOLDER, exists=True),
            *(SearchPlace(found_by="RUNPATH", path=f"{SITE}/nvidia/{c}/lib", exists=True) for c in components),
            SearchPlace(found_by="ld.so.cache", path="/etc/ld.so.cache", exists=True),
            SearchPlace(found_by="default directory", path="/usr/lib", exists=True),
        ),
        "libraries": listed,
        "frameworks": tuple(
            FrameworkLibrary(
                framework="TensorFlow",
                soname=item.soname or "",
                path=item.path or "",
                packages=(f"{item.package}=={item.package_version}",) if item.package else (),
            )
            for item in listed
            if item.status == "found" and item.name != "cuda"
        ),
        "xla_files": (
            XlaFile(name="libdevice", status="found", path=f"{root}/nvvm/libdevice/libdevice.10.bc", **nvcc),
            XlaFile(name="ptxas", status="found", path=f"{root}/bin/ptxas", **nvcc),
        ),
        "driver_version": listed[0].version,
        "driver_is_compat": False if listed[0].path else None,
    }
    return Libraries(**{**values, **changes})


def no_libraries() -> Libraries:
    """A TensorFlow without CUDA."""
    return Libraries(cuda_build=False, note="this TensorFlow was built without CUDA and opens none of its libraries")


def without_wheels() -> Libraries:
    """Plain ``tensorflow`` on a machine with a driver and without CUDA. All libraries are missing."""
    return libraries(*map(missing, _WHEELS))
