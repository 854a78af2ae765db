"""PCI addresses of CUDA GPUs, from a driver library that the tests build."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import shared_libraries

LIBRARY = """
#include <stdio.h>
int cuInit(unsigned flags) { return INIT; }
int cuDeviceGetCount(int *count) { *count = 3; return 0; }
int cuDeviceGet(int *device, int index) { *device = 10 + index; return index == 1 ? 101 : 0; }
int cuDeviceGetPCIBusId(char *text, int size, int device) {
    return snprintf(text, size, device == 10 ? "0000:3B:00.0" : "00010008:01:00.0") < 0;
}
"""


def addresses(folder: Path) -> list[str | None]:
    """The output of a process with the folder on LD_LIBRARY_PATH."""
    code = "import json; from kdoctor_target.inspect.cuda import gpu_addresses; print(json.dumps(gpu_addresses()))"
    environ = {"LD_LIBRARY_PATH": str(folder), "PYTHONPATH": str(shared_libraries.DOCTOR)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    found: list[str | None] = json.loads(done.stdout)
    return found


@pytest.mark.compiler
def test_addresses_are_in_sysfs_form_and_cuda_order(tmp_path: Path) -> None:
    shared_libraries.build(tmp_path / "libcuda.so.1", LIBRARY, "-DINIT=0")
    assert addresses(tmp_path) == ["0000:3b:00.0", None, "10008:01:00.0"]


@pytest.mark.compiler
def test_failing_driver_gives_no_addresses(tmp_path: Path) -> None:
    shared_libraries.build(tmp_path / "libcuda.so.1", LIBRARY, "-DINIT=100")  # CUDA_ERROR_NO_DEVICE
    assert addresses(tmp_path) == []


@pytest.mark.compiler
def test_library_without_the_calls_gives_no_addresses(tmp_path: Path) -> None:
    shared_libraries.build(tmp_path / "libcuda.so.1")
    assert addresses(tmp_path) == []
