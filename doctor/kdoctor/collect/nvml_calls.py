"""Which NVML call reads which fact, and how its answer becomes one. For the NVML child alone.

Source: https://docs.nvidia.com/deploy/nvml-api/ for calls, units, field ids and what a return code means.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pynvml

Read = Callable[[Any], Any]
"""Takes a device handle; what it raises is the field's error."""

ERROR_NAMES: dict[int, str] = {getattr(pynvml, name): name for name in dir(pynvml) if name.startswith("NVML_ERROR_")}


@dataclass(frozen=True)
class Failure:
    """An answer that says only why there is none: one of several that a call gives, or one that cannot be meant."""

    error: str


def code(error: Exception) -> int:
    """The code that NVML returned; the binding sets it where no type checker sees it."""
    return int(getattr(error, "value", pynvml.NVML_ERROR_UNKNOWN))


def code_name(number: int) -> str:
    """The name of NVML's constant, for example ``NVML_ERROR_GPU_IS_LOST``."""
    return ERROR_NAMES.get(number, f"NVML error {number}")


def error_name(error: Exception) -> str:
    """The same of an exception: what is missing in the library, or in an older binding, is "function not found"."""
    if isinstance(error, pynvml.NVMLError):
        return code_name(code(error))
    if isinstance(error, (pynvml.NVMLLibraryMismatchError, AttributeError)):
        return "NVML_ERROR_FUNCTION_NOT_FOUND"
    return f"{type(error).__name__}: {error}"


def sysfs_bus_id(text: str) -> str:
    """``00000000:3B:00.0``, as NVML writes it, in the form of sysfs: ``0000:3b:00.0``."""
    domain, bus, rest = text.split(":")
    return f"{int(domain, 16):04x}:{bus}:{rest}".lower()


# --- answers ---------------------------------------------------------------------------------------------------

_ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
_COMPUTE_MODES = ("default", "exclusive-thread", "prohibited", "exclusive-process")
_VIRTUALIZATION_MODES = ("none", "passthrough", "vgpu", "host-vgpu", "host-vsga")
_ADDRESSING_MODES = ("none", "hmm", "ats")
_FABRIC_STATES = ("not-supported", "not-started", "in-progress", "completed")
_RECOVERY_ACTIONS = (
    "none", "reset", "reboot", "drain-p2p", "drain-and-reset", "recover-imex-domain", "bus-reset", "system-reboot",
)  # fmt: skip
P2P_STATUSES = ("OK", "CNS", "GNS", "TNS", "DR", "NS")
_REMOTE_KINDS = {0: "gpu", 1: "npu", 2: "switch", 255: "unknown"}
_LEVELS = {0: "internal", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}

_PERFORMANCE_STATE_UNKNOWN = 32
"""``NVML_PSTATE_UNKNOWN``: an answer that says nothing."""
_SET_WORDS = 32
"""64-bit words of a set of processors: more than any machine has (2048)."""


def one_of(words: Sequence[str], number: int) -> str | Failure:
    """The word of that number; a number that nobody knows is no answer."""
    return words[number] if 0 <= number < len(words) else Failure(f"unknown value {number}")


def _flag(number: int) -> bool | Failure:
    return bool(number) if number in {0, 1} else Failure(f"unknown value {number}")


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000


def _degrees(number: int) -> int | Failure:
    """An absolute temperature; the newer families answer with offsets or nothing, and mean another threshold."""
    signed = ctypes.c_int(number).value
    return signed if signed > 0 else Failure(f"no absolute temperature: {signed}")


def _margin(number: int) -> int | Failure:
    """A threshold of T.Limit, which is an offset: never above zero."""
    signed = ctypes.c_int(number & 0xFFFFFFFF).value
    return signed if signed <= 0 else Failure(f"no offset: {signed}")


def _count(number: int) -> int | Failure:
    """A counter; the highest number of 32 or 64 bits stands for "not known"."""
    return number if 0 <= number not in {2**32 - 1, 2**64 - 1} else Failure("no count")


def _numbers(words: Iterable[int]) -> tuple[int, ...] | Failure:
    """The members of a set of 64-bit words; an empty one says nothing."""
    found = [64 * place + bit for place, word in enumerate(words) if word for bit in range(64) if word >> bit & 1]
    return tuple(found) or Failure("an empty set")


def _ask(call: str) -> Callable[..., Any]:
    """The binding's function, looked up when it is called: an older binding lacks some."""

    def ask(*arguments: Any) -> Any:
        return getattr(pynvml, call)(*arguments)

    return ask


# --- calls that give one fact ----------------------------------------------------------------------------------


def _bus_id(handle: Any) -> str:
    info = pynvml.nvmlDeviceGetPciInfo(handle)
    return sysfs_bus_id(info.busId.decode() if isinstance(info.busId, bytes) else info.busId)


def _compute_capability(handle: Any) -> str:
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return f"{major}.{minor}"


def _processes(handle: Any) -> list[dict[str, Any]]:
    try:
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except pynvml.NVMLLibraryMismatchError:
        # Drivers before 510 have no third version of that function.
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses_v2(handle)
    return [
        {"pid": process.pid, "used_memory_bytes": process.usedGpuMemory, "name": _process_name(process.pid)}
        for process in processes
    ]


def _process_name(pid: int) -> str | None:
    try:
        return str(pynvml.nvmlSystemGetProcessName(pid)) or None
    except Exception:  # noqa: BLE001 - its absence is told by None: it ended, or lives in another namespace
        return None


def _performance_state(handle: Any) -> int | None:
    state = int(pynvml.nvmlDeviceGetPerformanceState(handle))
    return None if state == _PERFORMANCE_STATE_UNKNOWN else state


def _architecture(handle: Any) -> str | Failure:
    number = pynvml.nvmlDeviceGetArchitecture(handle)
    return _ARCHITECTURES.get(number) or Failure(f"unknown value {number}")


def _sram_threshold(handle: Any) -> bool | Failure:
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    pynvml.nvmlDeviceGetSramEccErrorStatus(handle, ctypes.byref(status))
    return _flag(int(status.bThresholdExceeded))


def _ecc_errors(kind: int, counter: int) -> Read:
    return lambda handle: _count(pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, counter))


def _threshold(kind: int) -> Read:
    return lambda handle: _degrees(pynvml.nvmlDeviceGetTemperatureThreshold(handle, kind))


def clock_event_reasons(handle: Any) -> int:
    """One reading of the bit mask; the call's older name is asked where the driver lacks the newer."""
    try:
        return int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except pynvml.NVMLError as error:
        if code(error) != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            raise
        return int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


FIELDS: dict[str, Read] = {
    "name": _ask("nvmlDeviceGetName"),
    "uuid": _ask("nvmlDeviceGetUUID"),
    "bus_id": _bus_id,
    "compute_capability": _compute_capability,
    "processes": _processes,
    "pcie_generation": _ask("nvmlDeviceGetCurrPcieLinkGeneration"),
    "pcie_generation_max": _ask("nvmlDeviceGetMaxPcieLinkGeneration"),
    "pcie_width": _ask("nvmlDeviceGetCurrPcieLinkWidth"),
    "pcie_width_max": _ask("nvmlDeviceGetMaxPcieLinkWidth"),
    "performance_state": _performance_state,
    "architecture": _architecture,
    "minor_number": _ask("nvmlDeviceGetMinorNumber"),
    "pcie_generation_gpu_max": _ask("nvmlDeviceGetGpuMaxPcieLinkGeneration"),
    "pcie_replay_counter": lambda handle: _count(pynvml.nvmlDeviceGetPcieReplayCounter(handle)),
    "bar1_total_bytes": lambda handle: pynvml.nvmlDeviceGetBAR1MemoryInfo(handle).bar1Total,
    "compute_mode": lambda handle: one_of(_COMPUTE_MODES, pynvml.nvmlDeviceGetComputeMode(handle)),
    "persistence_mode": lambda handle: _flag(pynvml.nvmlDeviceGetPersistenceMode(handle)),
    "ecc_corrected_volatile": _ecc_errors(0, 0),
    "ecc_uncorrected_volatile": _ecc_errors(1, 0),
    "ecc_corrected_aggregate": _ecc_errors(0, 1),
    "ecc_uncorrected_aggregate": _ecc_errors(1, 1),
    "sram_threshold_exceeded": _sram_threshold,
    "temperature_c": lambda handle: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
    "temperature_slowdown_c": _threshold(pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
    "temperature_shutdown_c": _threshold(pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
    "temperature_margin_c": _ask("nvmlDeviceGetMarginTemperature"),
    "fan_speed_percent": _ask("nvmlDeviceGetFanSpeed"),
    "power_draw_w": lambda handle: _watts(pynvml.nvmlDeviceGetPowerUsage(handle)),
    "enforced_power_limit_w": lambda handle: _watts(pynvml.nvmlDeviceGetEnforcedPowerLimit(handle)),
    "default_power_limit_w": lambda handle: _watts(pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle)),
    "clock_sm_mhz": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
    "clock_sm_max_mhz": lambda handle: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM),
    "clock_memory_mhz": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
    "clock_memory_max_mhz": lambda handle: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM),
    "virtualization_mode": lambda handle: one_of(_VIRTUALIZATION_MODES, pynvml.nvmlDeviceGetVirtualizationMode(handle)),
    "addressing_mode": lambda handle: one_of(_ADDRESSING_MODES, int(pynvml.nvmlDeviceGetAddressingMode(handle))),
    "cpu_affinity": lambda handle: _numbers(pynvml.nvmlDeviceGetCpuAffinity(handle, _SET_WORDS)),
    "numa_affinity": lambda handle: _numbers(
        pynvml.nvmlDeviceGetMemoryAffinity(handle, _SET_WORDS, pynvml.NVML_AFFINITY_SCOPE_NODE)
    ),
    "gpu_numa_id": _ask("nvmlDeviceGetNumaNodeId"),
}
"""Field of ``Gpu`` to the call that reads it."""


# --- calls that give several facts -----------------------------------------------------------------------------


def _memory(handle: Any) -> tuple[int, int]:
    """Total and used bytes; used without what the driver reserves for itself, where it can tell them apart."""
    try:
        info = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if code(error) not in (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH):
            raise
        info = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return int(info.total), int(info.used)


def _modes(call: str) -> Read:
    return lambda handle: tuple(_flag(number) for number in getattr(pynvml, call)(handle))


def _remapped_rows(handle: Any) -> tuple[Any, ...]:
    correctable, uncorrectable, pending, failure = pynvml.nvmlDeviceGetRemappedRows(handle)
    return correctable, uncorrectable, _flag(pending), _flag(failure)


def _utilization(handle: Any) -> tuple[int, int]:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return int(rates.gpu), int(rates.memory)


def _fabric(handle: Any) -> tuple[Any, Any]:
    info = pynvml.c_nvmlGpuFabricInfoV_t()
    try:
        pynvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
    except pynvml.NVMLError as error:
        if code(error) not in (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH):
            raise
        info = pynvml.c_nvmlGpuFabricInfo_t()
        pynvml.nvmlDeviceGetGpuFabricInfo(handle, ctypes.byref(info))
    state = one_of(_FABRIC_STATES, int(info.state))
    if state != "completed":
        return state, Failure("the registration has not ended")
    return state, "success" if info.status == pynvml.NVML_SUCCESS else code_name(int(info.status))


_BY_FIELD_ID: dict[str, tuple[int, Callable[[int], Any]]] = {
    "retired_pages_single_bit": (29, _count),
    "retired_pages_double_bit": (30, _count),
    "retired_pages_pending": (31, _flag),
    "temperature_shutdown_margin_c": (193, _margin),
    "temperature_slowdown_margin_c": (194, _margin),
    "recovery_action": (230, lambda number: one_of(_RECOVERY_ACTIONS, number)),
}
"""Field of ``Gpu`` to NVML's field id (``NVML_FI_DEV_...``) and what to make of the number."""


def _field_values(handle: Any) -> tuple[Any, ...]:
    """Facts that have no call of their own: one call, and a return code for each."""
    ids = [number for number, _ in _BY_FIELD_ID.values()]
    values = pynvml.nvmlDeviceGetFieldValues(handle, ids)
    told = zip(values, _BY_FIELD_ID.values(), strict=True)
    return tuple(_from_field(value, make) for value, (_, make) in told)


def _from_field(value: Any, make: Callable[[int], Any]) -> Any:
    number = field_number(value)
    return number if isinstance(number, Failure) else make(number)


def field_number(value: Any) -> int | Failure:
    """The number of a field value, whichever of the union's members holds it; or the code that it came with."""
    if value.nvmlReturn != pynvml.NVML_SUCCESS:
        return Failure(code_name(value.nvmlReturn))
    members = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
    if value.valueType >= len(members):
        return Failure(f"unknown type of value {value.valueType}")
    number = getattr(value.value, members[value.valueType])
    return int(number) if math.isfinite(number) else Failure(f"no number: {number}")


JOINT: dict[tuple[str, ...], Read] = {
    ("memory_total_bytes", "memory_used_bytes"): _memory,
    ("mig_mode", "mig_mode_pending"): _modes("nvmlDeviceGetMigMode"),
    ("ecc_mode", "ecc_mode_pending"): _modes("nvmlDeviceGetEccMode"),
    (
        "remapped_rows_correctable",
        "remapped_rows_uncorrectable",
        "remapped_rows_pending",
        "remapped_rows_failure",
    ): _remapped_rows,
    ("utilization_gpu_percent", "utilization_memory_percent"): _utilization,
    ("fabric_state", "fabric_status"): _fabric,
    tuple(_BY_FIELD_ID): _field_values,
}
"""Fields of ``Gpu`` that one call reads together, in the order of its answers."""


# --- NVLink ----------------------------------------------------------------------------------------------------

_LINK_COUNT, _LINK_SPEED = 91, 164
_LINK_SPEEDS = (84, 85, 86, 87, 88, 89, 132, 133, 134, 135, 136, 137)
"""Field ids of the speed of links 0 to 11, for drivers that do not know ``_LINK_SPEED``."""
_LINKS_AT_MOST = 36


def links(handle: Any) -> list[dict[str, Any]]:
    """The GPU's NVLinks; raises "not supported" where it has none.

    Asked how many there are, old drivers do not say: then the links are tried until one does not exist.
    """
    count = field_number(pynvml.nvmlDeviceGetFieldValues(handle, [_LINK_COUNT])[0])
    found: list[dict[str, Any]] = []
    for index in range(_LINKS_AT_MOST if isinstance(count, Failure) else count):
        link = _link(handle, index)
        missing = link["errors"].get("active") in {"NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_INVALID_ARGUMENT"}
        if missing and isinstance(count, Failure):
            break
        found.append(link)
    if not found or all(link["errors"].get("active") == "NVML_ERROR_NOT_SUPPORTED" for link in found):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    _add_speeds(handle, found)
    return found


_LINK_FIELDS: dict[str, Callable[[Any, int], Any]] = {
    "active": lambda handle, index: _flag(pynvml.nvmlDeviceGetNvLinkState(handle, index)),
    "version": lambda handle, index: _link_version(pynvml.nvmlDeviceGetNvLinkVersion(handle, index)),
    "remote_bus_id": lambda handle, index: _remote_bus_id(pynvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, index)),
    "remote_kind": lambda handle, index: _REMOTE_KINDS.get(
        pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, index), Failure("unknown value")
    ),
}


def _link(handle: Any, index: int) -> dict[str, Any]:
    """One link; of one that is not active nothing more is asked."""
    errors: dict[str, str] = {}
    link: dict[str, Any] = {"index": index, "errors": errors}
    for field, read in _LINK_FIELDS.items():
        try:
            value = read(handle, index)
        except Exception as error:  # noqa: BLE001 - whatever it raises is this field's error
            value = Failure(error_name(error))
        if isinstance(value, Failure):
            errors[field] = value.error
        else:
            link[field] = value
        if not link.get("active"):
            break
    return link


_LINK_VERSIONS = {1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5, 8: 6}
"""``NVML_NVLINK_VERSION_...`` (1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0, 6.0) to the major version."""


def _link_version(number: int) -> int | Failure:
    return _LINK_VERSIONS.get(number, Failure(f"unknown value {number}"))


def _remote_bus_id(info: Any) -> str:
    return sysfs_bus_id(info.busId.decode() if isinstance(info.busId, bytes) else info.busId)


def _add_speeds(handle: Any, found: Sequence[dict[str, Any]]) -> None:
    """Add the speed of each active link, in GB/s."""
    active = [link for link in found if link.get("active")]
    if not active:
        return
    asked = _speeds(handle, [(_LINK_SPEED, link["index"]) for link in active])
    if all(isinstance(speed, Failure) for speed in asked):
        asked = _speeds(handle, [_LINK_SPEEDS[link["index"]] for link in active if link["index"] < len(_LINK_SPEEDS)])
    for link, speed in zip(active, asked, strict=False):
        if isinstance(speed, Failure):
            link["errors"]["speed_gbs"] = speed.error
        else:
            link["speed_gbs"] = speed / 1000


def _speeds(handle: Any, ids: Sequence[Any]) -> list[int | Failure]:
    """Megabytes a second of several field ids."""
    try:
        return [field_number(value) for value in pynvml.nvmlDeviceGetFieldValues(handle, ids)]
    except pynvml.NVMLError as error:
        return [Failure(error_name(error))] * len(ids)


# --- pairs and the system --------------------------------------------------------------------------------------


def _level(first: Any, second: Any) -> str | Failure:
    number = pynvml.nvmlDeviceGetTopologyCommonAncestor(first, second)
    return _LEVELS.get(number, Failure(f"unknown level {number}"))


def _p2p(index: int) -> Callable[[Any, Any], str | Failure]:
    return lambda first, second: one_of(P2P_STATUSES, pynvml.nvmlDeviceGetP2PStatus(first, second, index))


PAIR_FIELDS: dict[str, Callable[[Any, Any], Any]] = {
    "level": _level,
    "p2p_read": _p2p(0),  # the binding's own constant for it is a tuple, by a stray comma
    "p2p_write": _p2p(1),
    "p2p_nvlink": _p2p(2),
}
"""Field of ``GpuPair`` to the call that reads it."""


def _cuda_driver_version() -> str | None:
    number = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


def _conf_compute() -> bool | Failure:
    return _flag(pynvml.nvmlSystemGetConfComputeState().ccFeature)


def _conf_compute_multi_gpu() -> str | Failure:
    settings = pynvml.c_nvmlSystemConfComputeSettings_v1_t()
    returned = pynvml.nvmlSystemGetConfComputeSettings(ctypes.byref(settings))
    if returned != pynvml.NVML_SUCCESS:  # the binding leaves this one call unchecked
        return Failure(code_name(returned))
    return one_of(("none", "protected-pcie", "nvle"), settings.multiGpuMode)


SYSTEM_FIELDS: dict[str, Callable[[], Any]] = {
    "driver_version": _ask("nvmlSystemGetDriverVersion"),
    "nvml_version": _ask("nvmlSystemGetNVMLVersion"),
    "cuda_driver_version": _cuda_driver_version,
    "conf_compute": _conf_compute,
    "conf_compute_multi_gpu": _conf_compute_multi_gpu,
    "conf_compute_ready": lambda: _flag(pynvml.nvmlSystemGetConfComputeGpusReadyState()),
    "count": _ask("nvmlDeviceGetCount"),
}
"""Field of ``Gpus`` to the call that reads it; the count last."""
