"""Builders of the job's Python environment: interpreter, packages, TensorFlow, Keras, variables."""

from typing import Any

from helpers.facts.base import PYTHON, SITE
from kdoctor.facts import Environment, KerasChoice, Package, Packages, Target, TensorFlowBuild, canonical_name


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
    """The given distributions, or those of a small healthy TensorFlow 2.21 environment."""
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
    found = tuple(sorted(installed or default, key=lambda item: item.name))
    return Packages(installed=found, has_pip=has_pip, files=3567)


def tensorflow(**changes: Any) -> TensorFlowBuild:
    """TensorFlow 2.21.0 from its Linux wheel, according to its build_info.py."""
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
        "settings": {"floatx": "float32", "epsilon": "1e-07", "image_data_format": "channels_last"},
    }
    return KerasChoice(**{**values, **changes})


def environment(**variables: str) -> Environment:
    """Only these variables, of those that the probe reads."""
    looked_for = ("CUDA_*", "KERAS_*", "LD_LIBRARY_PATH", "NCCL_*", "NVIDIA_*", "TF_*", "XLA_*")
    return Environment(variables=variables, allow_list=looked_for)
