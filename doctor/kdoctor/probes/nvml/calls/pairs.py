"""Which NVML call reads which fact of a pair of GPUs, and of the driver."""

import ctypes
from collections.abc import Callable
from typing import Any

import pynvml

from kdoctor.probes.nvml.calls.answers import Failure, ask, code_name, flag, one_of

P2P_STATUSES = ("OK", "CNS", "GNS", "TNS", "DR", "NS")
_LEVELS = {0: "internal", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}


def _level(first: Any, second: Any) -> str | Failure:
    number = pynvml.nvmlDeviceGetTopologyCommonAncestor(first, second)
    return _LEVELS.get(number, Failure(f"unknown level {number}"))


def _p2p(index: int) -> Callable[[Any, Any], str | Failure]:
    return lambda first, second: one_of(P2P_STATUSES, pynvml.nvmlDeviceGetP2PStatus(first, second, index))


PAIR_FIELDS: dict[str, Callable[[Any, Any], Any]] = {
    "level": _level,
    "p2p_read": _p2p(0),  # the binding's constant for it is a tuple, by mistake
    "p2p_write": _p2p(1),
    "p2p_nvlink": _p2p(2),
}
"""Field of ``GpuPair`` to the call that reads it."""


def _cuda_driver_version() -> str | None:
    number = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


def _conf_compute_multi_gpu() -> str | Failure:
    settings = pynvml.c_nvmlSystemConfComputeSettings_v1_t()
    returned = pynvml.nvmlSystemGetConfComputeSettings(ctypes.byref(settings))
    if returned != pynvml.NVML_SUCCESS:  # the binding does not check this call
        return Failure(code_name(returned))
    return one_of(("none", "protected-pcie", "nvle"), settings.multiGpuMode)


SYSTEM_FIELDS: dict[str, Callable[[], Any]] = {
    "driver_version": ask("nvmlSystemGetDriverVersion"),
    "nvml_version": ask("nvmlSystemGetNVMLVersion"),
    "cuda_driver_version": _cuda_driver_version,
    "conf_compute": lambda: flag(pynvml.nvmlSystemGetConfComputeState().ccFeature),
    "conf_compute_multi_gpu": _conf_compute_multi_gpu,
    "conf_compute_ready": lambda: flag(pynvml.nvmlSystemGetConfComputeGpusReadyState()),
    "count": ask("nvmlDeviceGetCount"),
}
"""Field of ``Gpus`` to the call that reads it, the count last."""
