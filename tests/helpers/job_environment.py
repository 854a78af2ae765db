"""A virtual environment with fake TensorFlow files and fake NVIDIA wheels, for probes of the target."""

import os
import sys
import venv
from pathlib import Path

from helpers.shared_libraries import build, build_opener

COMPONENTS = {
    "cudart": ("cuda_runtime", "libcudart.so.12", "int cudaRuntimeGetVersion(int *v) { *v = 12090; return 0; }"),
    "cublas": ("cublas", "libcublas.so.12", "12, 9, 1"),
    "cublasLt": ("cublas", "libcublasLt.so.12", "12, 9, 1"),
    "cufft": ("cufft", "libcufft.so.11", "11, 4, 1"),
    "cusolver": ("cusolver", "libcusolver.so.11", "11, 7, 5"),
    "cusparse": ("cusparse", "libcusparse.so.12", "12, 5, 10"),
    "cudnn": (
        "cudnn",
        "libcudnn.so.9",
        "long cudnnGetVersion(void) { return 91002; } long cudnnGetCudartVersion(void) { return 12090; }",
    ),
    "nccl": ("nccl", "libnccl.so.2", "int ncclGetVersion(int *v) { *v = 22707; return 0; }"),
    "cupti": ("cuda_cupti", "libcupti.so.12", "int cuptiGetVersion(int *v) { *v = 28; return 0; }"),
}
"""The libraries of CUDA 12.9 with cuDNN 9.10: name to folder below nvidia, soname, and source or version."""

HEADER = {
    "TF_CUDA_VERSION": "12.5.1",
    "TF_CUDART_VERSION": "12",
    "TF_CUPTI_VERSION": "12",
    "TF_CUBLAS_VERSION": "12",
    "TF_CUSOLVER_VERSION": "11",
    "TF_CUFFT_VERSION": "11",
    "TF_CUSPARSE_VERSION": "12",
    "TF_CUDNN_VERSION": "9",
    "TF_CUDA_TOOLKIT_PATH": "",
}
"""As in the wheel of TensorFlow 2.21."""


class JobEnvironment:
    """A separate environment, so that the packages of this one do not matter."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.python = folder / "bin/python"
        self.site = folder / "lib/python{}.{}/site-packages".format(*sys.version_info[:2])
        self.tensorflow = self.site / "tensorflow"

    def add_tensorflow(self, version: str = "2.21.0", *, runpath: str | None = None, **build_info: object) -> None:
        """Write the files of a TensorFlow build that kdoctor reads."""
        info = {"is_cuda_build": True, "cuda_version": "12.5.1", "cudnn_version": "9", **build_info}
        self._write("tensorflow/__init__.py", "raise RuntimeError('TensorFlow was imported')\n")
        self._write("tensorflow/python/platform/build_info.py", f"build_info = {info!r}\n")
        header = "".join(f'#define {name} "{value}"\n' for name, value in HEADER.items())
        self._write("tensorflow/include/third_party/gpus/cuda/cuda_config.h", header)
        self._write(f"tensorflow-{version}.dist-info/METADATA", f"Name: tensorflow\nVersion: {version}\n\n")
        if runpath is None:
            folders = dict.fromkeys(folder for folder, _, _ in COMPONENTS.values())
            runpath = ":".join(f"$ORIGIN/../nvidia/{folder}/lib" for folder in folders)
        build_opener(self.tensorflow / "libtensorflow_framework.so.2", runpath or None)

    def add_wheel(self, name: str) -> Path:
        """Build one library where its wheel installs it."""
        folder, soname, _ = COMPONENTS[name]
        path = build_library(self.site / "nvidia" / folder / "lib", name)
        package = f"nvidia_{folder}_cu12".replace("-", "_")
        self._write(f"{package}-12.9.1.dist-info/METADATA", f"Name: {package}\nVersion: 12.9.1\n\n")
        with (self.site / f"{package}-12.9.1.dist-info/RECORD").open("a") as record:
            record.write(f"nvidia/{folder}/lib/{soname},sha256=abc,1234\n")
        return path

    def add_wheels(self) -> dict[str, Path]:
        """Build every library."""
        return {name: self.add_wheel(name) for name in COMPONENTS}

    def environ(self, **variables: str) -> dict[str, str]:
        """The environment variables of a job, without the search paths of this process."""
        return {"PATH": "", "HOME": os.environ.get("HOME", "/"), **variables}

    def _write(self, name: str, text: str) -> None:
        path = self.site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def build_library(folder: Path, name: str) -> Path:
    """Build one fake library in the folder."""
    _, soname, source = COMPONENTS[name]
    if "(" not in source:
        source = f"int {name}GetProperty(int i, int *v) {{ int all[] = {{{source}}}; *v = all[i]; return 0; }}"
    return build(folder / soname, source)
