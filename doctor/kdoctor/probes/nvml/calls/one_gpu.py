"""Which NVML call reads which fact of one GPU, except its NVLinks."""

import ctypes
from collections.abc import Callable
from typing import Any

import pynvml

from kdoctor.probes.nvml.calls.answers import (
    Failure,
    Read,
    ask,
    bus_id,
    code,
    code_name,
    count,
    degrees,
    field_number,
    flag,
    margin,
    numbers,
    one_of,
    watts,
)

_ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada Lovelace", 9: "Hopper",
    10: "Blackwell", 13: "Rubin",
}  # fmt: skip
_COMPUTE_MODES = ("default", "exclusive-thread", "prohibited", "exclusive-process")
_VIRTUALIZATION_MODES = ("none", "passthrough", "vgpu", "host-vgpu", "host-vsga")
_ADDRESSING_MODES = ("none", "hmm", "ats")
_FABRIC_STATES = ("not-supported", "not-started", "in-progress", "completed")
_RECOVERY_ACTIONS = (
    "none", "reset", "reboot", "drain-p2p", "drain-and-reset", "recover-imex-domain", "bus-reset", "system-reboot",
)  # fmt: skip

_PERFORMANCE_STATE_UNKNOWN = 32
"""``NVML_PSTATE_UNKNOWN``."""
_SET_WORDS = 32
"""64-bit words of a set of processors: enough for 2048."""


def _compute_capability(handle: Any) -> str:
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return f"{major}.{minor}"


def compute_processes(handle: Any) -> list[Any]:
    """The compute processes, as NVML's structures."""
    try:
        return list(pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    except pynvml.NVMLLibraryMismatchError:
        # Drivers before 510 lack the third version of that function.
        return list(pynvml.nvmlDeviceGetComputeRunningProcesses_v2(handle))


def _graphics_processes(handle: Any) -> list[Any]:
    try:
        return list(pynvml.nvmlDeviceGetGraphicsRunningProcesses(handle))
    except pynvml.NVMLLibraryMismatchError:
        return list(pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2(handle))


def _listed(processes: list[Any]) -> list[dict[str, Any]]:
    return [
        {"pid": process.pid, "used_memory_bytes": process.usedGpuMemory, "name": _process_name(process.pid)}
        for process in processes
    ]


def _process_name(pid: int) -> str | None:
    try:
        return str(pynvml.nvmlSystemGetProcessName(pid)) or None
    except Exception:  # noqa: BLE001 - it has ended, or is in another namespace
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
    return flag(int(status.bThresholdExceeded))


def _inforom_valid(handle: Any) -> bool:
    pynvml.nvmlDeviceValidateInforom(handle)  # raises "corrupted infoROM"
    return True


def _ecc_errors(kind: int, counter: int) -> Read:
    return lambda handle: count(pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, counter))


def _threshold(kind: int) -> Read:
    return lambda handle: degrees(pynvml.nvmlDeviceGetTemperatureThreshold(handle, kind))


def clock_event_reasons(handle: Any) -> int:
    """One reading of the bit mask, with the call's older name if the driver lacks the newer one."""
    try:
        return int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except pynvml.NVMLError as error:
        if code(error) != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            raise
        return int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


FIELDS: dict[str, Read] = {
    "name": ask("nvmlDeviceGetName"),
    "uuid": ask("nvmlDeviceGetUUID"),
    "bus_id": lambda handle: bus_id(pynvml.nvmlDeviceGetPciInfo(handle)),
    "compute_capability": _compute_capability,
    "processes": lambda handle: _listed(compute_processes(handle)),
    "graphics_processes": lambda handle: _listed(_graphics_processes(handle)),
    "pcie_generation": ask("nvmlDeviceGetCurrPcieLinkGeneration"),
    "pcie_generation_max": ask("nvmlDeviceGetMaxPcieLinkGeneration"),
    "pcie_width": ask("nvmlDeviceGetCurrPcieLinkWidth"),
    "pcie_width_max": ask("nvmlDeviceGetMaxPcieLinkWidth"),
    "performance_state": _performance_state,
    "architecture": _architecture,
    "minor_number": ask("nvmlDeviceGetMinorNumber"),
    "pcie_generation_gpu_max": ask("nvmlDeviceGetGpuMaxPcieLinkGeneration"),
    "pcie_replay_counter": lambda handle: count(pynvml.nvmlDeviceGetPcieReplayCounter(handle)),
    "bar1_total_bytes": lambda handle: pynvml.nvmlDeviceGetBAR1MemoryInfo(handle).bar1Total,
    "compute_mode": lambda handle: one_of(_COMPUTE_MODES, pynvml.nvmlDeviceGetComputeMode(handle)),
    "persistence_mode": lambda handle: flag(pynvml.nvmlDeviceGetPersistenceMode(handle)),
    "ecc_corrected_volatile": _ecc_errors(0, 0),
    "ecc_uncorrected_volatile": _ecc_errors(1, 0),
    "ecc_corrected_aggregate": _ecc_errors(0, 1),
    "ecc_uncorrected_aggregate": _ecc_errors(1, 1),
    "sram_threshold_exceeded": _sram_threshold,
    "unrepairable_memory": lambda handle: flag(int(pynvml.nvmlDeviceGetUnrepairableMemoryFlag_v1(handle))),
    "inforom_valid": _inforom_valid,
    "temperature_c": lambda handle: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
    "temperature_slowdown_c": _threshold(pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
    "temperature_operating_max_c": _threshold(pynvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX),
    "temperature_shutdown_c": _threshold(pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
    "temperature_margin_c": ask("nvmlDeviceGetMarginTemperature"),
    "fan_speed_percent": ask("nvmlDeviceGetFanSpeed"),
    "power_draw_w": lambda handle: watts(pynvml.nvmlDeviceGetPowerUsage(handle)),
    "enforced_power_limit_w": lambda handle: watts(pynvml.nvmlDeviceGetEnforcedPowerLimit(handle)),
    "default_power_limit_w": lambda handle: watts(pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle)),
    "clock_sm_mhz": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
    "clock_sm_max_mhz": lambda handle: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM),
    "clock_memory_mhz": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
    "clock_memory_max_mhz": lambda handle: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM),
    "virtualization_mode": lambda handle: one_of(_VIRTUALIZATION_MODES, pynvml.nvmlDeviceGetVirtualizationMode(handle)),
    "addressing_mode": lambda handle: one_of(_ADDRESSING_MODES, int(pynvml.nvmlDeviceGetAddressingMode(handle))),
    "cpu_affinity": lambda handle: numbers(pynvml.nvmlDeviceGetCpuAffinity(handle, _SET_WORDS)),
    "numa_affinity": lambda handle: numbers(
        pynvml.nvmlDeviceGetMemoryAffinity(handle, _SET_WORDS, pynvml.NVML_AFFINITY_SCOPE_NODE)
    ),
    "gpu_numa_id": ask("nvmlDeviceGetNumaNodeId"),
}
"""Field of ``Gpu`` to the call that reads it."""


def _memory(handle: Any) -> tuple[int, int]:
    """Total and used bytes; without the driver's reserve if it is reported separately."""
    try:
        info = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if code(error) not in (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH):
            raise
        info = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return int(info.total), int(info.used)


def _modes(call: str) -> Read:
    return lambda handle: tuple(flag(number) for number in getattr(pynvml, call)(handle))


def _remapped_rows(handle: Any) -> tuple[Any, ...]:
    correctable, uncorrectable, pending, failure = pynvml.nvmlDeviceGetRemappedRows(handle)
    return correctable, uncorrectable, flag(pending), flag(failure)


def _utilization(handle: Any) -> tuple[int, int]:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return int(rates.gpu), int(rates.memory)


def _fabric(handle: Any) -> tuple[Any, Any, Any]:
    info = _fabric_info(handle)
    state = one_of(_FABRIC_STATES, int(info.state))
    problems = fabric_problems(int(getattr(info, "healthMask", 0)), int(getattr(info, "healthSummary", 0)))
    if state != "completed":
        return state, Failure("the registration is not complete"), problems
    return state, "success" if info.status == pynvml.NVML_SUCCESS else code_name(int(info.status)), problems


_FABRIC_CALLS = (
    ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v3_t"),
    ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v2_t"),
    ("nvmlDeviceGetGpuFabricInfo", "c_nvmlGpuFabricInfo_t"),
)
"""The calls and their structures, the newest first. The last one has no health."""


def _fabric_info(handle: Any) -> Any:
    """The structure of the newest call that both the binding and the driver have."""
    failed: Exception | None = None
    for call, structure in _FABRIC_CALLS:
        try:
            info = getattr(pynvml, structure)()
            getattr(pynvml, call)(handle, ctypes.byref(info))
        except AttributeError as error:
            failed = error
        except pynvml.NVMLError as error:
            if code(error) not in _OLDER:
                raise
            failed = error
        else:
            return info
    raise failed or AssertionError("no call was tried")


_OLDER = (
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
)
"""What an older driver returns for a newer structure."""
_TRUE = 1
_FABRIC_FLAGS = (
    (0, "bandwidth: Degraded"),
    (2, "route recovery in progress: True"),
    (4, "route unhealthy: True"),
    (6, "access timeout recovery: True"),
)
"""Places of two bits each in the mask of the fabric's health, and what it means if they are ``NVML_..._TRUE``."""
_CONFIGURATION_SHIFT = 8
_CONFIGURATIONS = (
    None,
    None,
    "Incorrect System GUID",
    "Incorrect Chassis Serial Number",
    "No Partition",
    "Insufficient NVLinks",
    "Incompatible GPU Firmware",
    "Invalid Location",
    "GPU State Invalid",
)
"""``NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_...``: not supported, none, and what is incorrect."""
_SUMMARIES = {2: "Unhealthy", 3: "Limited Capacity"}


def fabric_problems(mask: int, summary: int) -> tuple[str, ...] | Failure:
    """What is not healthy, by the mask and the summary of the fabric's health (``NVML_GPU_FABRIC_HEALTH_...``)."""
    if not mask and not summary:
        return Failure("NVML_ERROR_NOT_SUPPORTED")
    found = [text for place, text in _FABRIC_FLAGS if mask >> place & 3 == _TRUE]
    number = mask >> _CONFIGURATION_SHIFT & 0xF
    configuration = _CONFIGURATIONS[number] if number < len(_CONFIGURATIONS) else f"unknown value {number}"
    found += [f"incorrect configuration: {configuration}"] if configuration else []
    if not found and summary in _SUMMARIES:
        found.append(f"summary: {_SUMMARIES[summary]}")
    return tuple(found)


_BY_FIELD_ID: dict[str, tuple[int, Callable[[int], Any]]] = {
    "retired_pages_single_bit": (29, count),
    "retired_pages_double_bit": (30, count),
    "retired_pages_pending": (31, flag),
    "temperature_shutdown_margin_c": (193, margin),
    "temperature_slowdown_margin_c": (194, margin),
    "recovery_action": (230, lambda number: one_of(_RECOVERY_ACTIONS, number)),
}
"""Field of ``Gpu`` to NVML's field id (``NVML_FI_DEV_...``) and the conversion of its number."""


def _field_values(handle: Any) -> tuple[Any, ...]:
    """Facts that are read by field id: one call, with a return code for each."""
    ids = [number for number, _ in _BY_FIELD_ID.values()]
    values = pynvml.nvmlDeviceGetFieldValues(handle, ids)
    pairs = zip(values, _BY_FIELD_ID.values(), strict=True)
    return tuple(_from_field(value, make) for value, (_, make) in pairs)


def _from_field(value: Any, make: Callable[[int], Any]) -> Any:
    number = field_number(value)
    return number if isinstance(number, Failure) else make(number)


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
    ("fabric_state", "fabric_status", "fabric_problems"): _fabric,
    ("channel_repair_pending", "tpc_repair_pending"): lambda handle: tuple(
        flag(int(number)) for number in pynvml.nvmlDeviceGetRepairStatus(handle)
    ),
    tuple(_BY_FIELD_ID): _field_values,
}
"""Fields of ``Gpu`` that one call reads together, in the order of its results."""
