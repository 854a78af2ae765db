"""The process that talks to NVML. It never runs inside kdoctor itself.

It sends a record ``{"at": <call>}`` before each call, so that a hang or a crash can be placed, and in the end
``{"facts": <fields of Gpus>}``. Each call's failure is recorded by the name of the error that NVML returned.
"""

from __future__ import annotations

import ctypes
import faulthandler
import itertools
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO, TypeVar

import pynvml

T = TypeVar("T")

_MARGIN_S = 5.0
"""kdoctor ends this process at its deadline; where kdoctor is gone, it ends itself this much later."""

_STATES = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "library-absent",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "driver-not-loaded",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "library-mismatch",
    pynvml.NVML_ERROR_NO_PERMISSION: "no-permission",
}

_LEVELS = {
    pynvml.NVML_TOPOLOGY_INTERNAL: "internal",
    pynvml.NVML_TOPOLOGY_SINGLE: "PIX",
    pynvml.NVML_TOPOLOGY_MULTIPLE: "PXB",
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "PHB",
    pynvml.NVML_TOPOLOGY_NODE: "NODE",
    pynvml.NVML_TOPOLOGY_SYSTEM: "SYS",
}

_ERROR_NAMES: dict[int, str] = {getattr(pynvml, name): name for name in dir(pynvml) if name.startswith("NVML_ERROR_")}

_PERFORMANCE_STATE_UNKNOWN = 32
"""``NVML_PSTATE_UNKNOWN``: an answer that says nothing."""


def main(settings: Mapping[str, Any]) -> None:
    """Send the facts. ``settings``: ``deadline_s``, in seconds."""
    faulthandler.enable(all_threads=True)
    faulthandler.dump_traceback_later(settings["deadline_s"] + _MARGIN_S, exit=True)
    # The driver's library may print; what it prints must not end up among the records.
    with os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace") as file:
        os.dup2(2, 1)
        Reader(file).read_all()


class Reader:
    """Calls NVML and keeps each call's error."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def read_all(self) -> None:
        """Send everything that NVML says."""
        trouble = self._initialise()
        if trouble:
            self._send({"facts": trouble})
            return
        self._send({"facts": self._read_driver()})
        self._send({"at": "nvmlShutdown"})
        pynvml.nvmlShutdown()

    def _send(self, record: object) -> None:
        self._file.write("\x1e" + json.dumps(record, ensure_ascii=False) + "\n")
        self._file.flush()

    def _initialise(self) -> dict[str, str] | None:
        """None if NVML is ready; else the state and why."""
        self._send({"at": "loading the NVML library"})
        loader = _loader_error()
        self._send({"at": "nvmlInit"})
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            state = _STATES.get(_code(error), "failed")
            if state == "library-absent" and loader and not _means_absent(loader):
                state = "failed"
            words = loader if _code(error) == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND and loader else str(error)
            return {"state": state, "error": f"{_error_name(error)}: {words}"}
        except Exception as error:  # noqa: BLE001 - a stranger's library of that name may answer anything
            return {"state": "failed", "error": f"{type(error).__name__}: {error}"}
        return None

    def _read_driver(self) -> dict[str, Any]:
        errors: dict[str, str] = {}
        facts: dict[str, Any] = {"state": "ready", "errors": errors}
        facts["driver_version"] = self._call(errors, "driver_version", "", pynvml.nvmlSystemGetDriverVersion)
        cuda = self._call(errors, "cuda_driver_version", "", pynvml.nvmlSystemGetCudaDriverVersion_v2)
        facts["cuda_driver_version"] = f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None
        facts["count"] = count = self._call(errors, "count", "", pynvml.nvmlDeviceGetCount)
        handles: dict[int, Any] = {}
        facts["devices"] = [self._read_device(index, handles) for index in range(count or 0)]
        facts["pairs"] = [
            self._read_pair(first, second, handles) for first, second in itertools.combinations(range(count or 0), 2)
        ]
        return facts

    def _call(self, errors: dict[str, str], field: str, subject: str, call: Callable[[], T]) -> T | None:
        """What the call returns; None if it fails, with the error's name under ``field``."""
        self._send({"at": f"the call for {subject}{field}"})
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - NVMLLibraryMismatchError and decoding errors are no NVMLError
            errors[field] = _error_name(error)
            return None

    def _read_device(self, index: int, handles: dict[int, Any]) -> dict[str, Any]:
        errors: dict[str, str] = {}
        subject = f"GPU {index}: "
        handle = self._call(errors, "handle", subject, lambda: pynvml.nvmlDeviceGetHandleByIndex(index))
        device: dict[str, Any] = {"index": index, "errors": errors}
        if handle is None:
            return device
        handles[index] = handle
        for field, read in _FIELDS.items():
            device[field] = self._call(errors, field, subject, lambda read=read: read(handle))  # type: ignore[misc]
        memory = self._call(errors, "memory", subject, lambda: _memory(handle))
        if memory is None:
            errors["memory_total_bytes"] = errors["memory_used_bytes"] = errors.pop("memory")
        else:
            device["memory_total_bytes"], device["memory_used_bytes"] = memory
        return device

    def _read_pair(self, first: int, second: int, handles: Mapping[int, Any]) -> dict[str, Any]:
        pair: dict[str, Any] = {"first": first, "second": second, "level": None}
        if first not in handles or second not in handles:
            lost = first if first not in handles else second
            return {**pair, "error": f"GPU {lost} could not be opened"}
        errors: dict[str, str] = {}
        level = self._call(
            errors,
            "level",
            f"GPU {first} - GPU {second}: ",
            lambda: pynvml.nvmlDeviceGetTopologyCommonAncestor(handles[first], handles[second]),
        )
        if level is not None and level not in _LEVELS:
            return {**pair, "error": f"unknown level {level}"}
        return {**pair, "level": _LEVELS[level] if level is not None else None, "error": errors.get("level")}


def _compute_capability(handle: Any) -> str:
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return f"{major}.{minor}"


def _bus_id(handle: Any) -> str:
    info = pynvml.nvmlDeviceGetPciInfo(handle)
    text = info.busId.decode() if isinstance(info.busId, bytes) else info.busId
    return sysfs_bus_id(text)


def sysfs_bus_id(text: str) -> str:
    """``00000000:3B:00.0``, as NVML writes it, in the form of sysfs: ``0000:3b:00.0``."""
    domain, bus, rest = text.split(":")
    return f"{int(domain, 16):04x}:{bus}:{rest}".lower()


def _memory(handle: Any) -> tuple[int, int]:
    """Total and used bytes; used without what the driver reserves for itself, where it can tell them apart."""
    try:
        info = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if _code(error) not in (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH):
            raise
        info = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return int(info.total), int(info.used)


def _processes(handle: Any) -> list[dict[str, int | None]]:
    try:
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except pynvml.NVMLLibraryMismatchError:
        # Drivers before 510 have no third version of that function.
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses_v2(handle)
    return [{"pid": process.pid, "used_memory_bytes": process.usedGpuMemory} for process in processes]


def _performance_state(handle: Any) -> int | None:
    state = int(pynvml.nvmlDeviceGetPerformanceState(handle))
    return None if state == _PERFORMANCE_STATE_UNKNOWN else state


_FIELDS: dict[str, Callable[[Any], Any]] = {
    "name": pynvml.nvmlDeviceGetName,
    "uuid": pynvml.nvmlDeviceGetUUID,
    "bus_id": _bus_id,
    "compute_capability": _compute_capability,
    "processes": _processes,
    "pcie_generation": pynvml.nvmlDeviceGetCurrPcieLinkGeneration,
    "pcie_generation_max": pynvml.nvmlDeviceGetMaxPcieLinkGeneration,
    "pcie_width": pynvml.nvmlDeviceGetCurrPcieLinkWidth,
    "pcie_width_max": pynvml.nvmlDeviceGetMaxPcieLinkWidth,
    "performance_state": _performance_state,
}
"""Field of ``Gpu`` to the call that reads it."""


def _code(error: Exception) -> int:
    """The code that NVML returned; the binding sets it where no type checker sees it."""
    return int(getattr(error, "value", pynvml.NVML_ERROR_UNKNOWN))


def _error_name(error: Exception) -> str:
    """The name of NVML's constant, for example ``NVML_ERROR_GPU_IS_LOST``."""
    if isinstance(error, pynvml.NVMLError):
        return _ERROR_NAMES.get(_code(error), f"NVML error {_code(error)}")
    if isinstance(error, pynvml.NVMLLibraryMismatchError):
        return "NVML_ERROR_FUNCTION_NOT_FOUND"
    return f"{type(error).__name__}: {error}"


def _loader_error() -> str | None:
    """Why the dynamic loader cannot load NVML, in its own words; the binding keeps them to itself."""
    if sys.platform == "win32":
        return None
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        return str(error)
    return None


def _means_absent(loader: str) -> bool:
    """Whether the loader found no such file; anything else is a library that is there and broken."""
    absent = ("no such file", "cannot open shared object file", "image not found")
    return "libnvidia-ml.so.1" in loader and any(words in loader.lower() for words in absent)
