"""Asks CUDA's driver library for the GPUs, without making a context or allocating memory."""

from __future__ import annotations

import ctypes
from typing import Any, List, Optional

_LIBRARY = "libcuda.so.1"
_ADDRESS_BYTES = 64
"""Longer than any PCI address (CUDA requires 13)."""


def gpu_addresses() -> List[Optional[str]]:
    """PCI addresses in sysfs form of the GPUs that CUDA enumerates in this process.

    They are in CUDA's order, which is also TensorFlow's. An address that CUDA does not report is None. The list is
    empty if the library is missing or fails.

    Source: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__DEVICE.html (cuDeviceGetPCIBusId).
    """
    try:
        library = ctypes.CDLL(_LIBRARY)
        count = ctypes.c_int()
        if library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count)):
            return []
        return [_address(library, index) for index in range(count.value)]
    except (OSError, AttributeError):
        return []


def _address(library: Any, index: int) -> Optional[str]:
    device = ctypes.c_int()
    text = ctypes.create_string_buffer(_ADDRESS_BYTES)
    if library.cuDeviceGet(ctypes.byref(device), index):
        return None
    if library.cuDeviceGetPCIBusId(text, _ADDRESS_BYTES, device):
        return None
    domain, _, rest = text.value.decode("ascii", "replace").lower().partition(":")
    try:
        return f"{int(domain, 16):04x}:{rest}"
    except ValueError:
        return None
