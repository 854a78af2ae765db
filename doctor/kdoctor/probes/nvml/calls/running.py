"""Which NVML call reads which fact of a GPU during a training: only fast calls that do not wait for the hardware.

The calls for the PCIe throughput (nvmlDeviceGetPcieThroughput) wait 20 ms each, so the byte counters are read instead.
"""

from typing import Any

import pynvml

from kdoctor.probes.nvml.calls.answers import Failure, Read, count, field_number, margin
from kdoctor.probes.nvml.calls.one_gpu import FIELDS, JOINT, clock_event_reasons, compute_processes

_SLOWDOWN_MARGIN = 194
_PCIE_BYTES = (197, 198)
"""Field ids: sent and received bytes since the driver was loaded; the counters may wrap around."""


_WIDE = {pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG}


def _slowdown_margin(handle: Any) -> Any:
    (value,) = pynvml.nvmlDeviceGetFieldValues(handle, [_SLOWDOWN_MARGIN])
    number = field_number(value)
    return number if isinstance(number, Failure) else margin(number)


def _pcie_bytes(handle: Any) -> tuple[Any, ...]:
    return tuple(_counter(value) for value in pynvml.nvmlDeviceGetFieldValues(handle, list(_PCIE_BYTES)))


def _counter(value: Any) -> int | Failure:
    number = field_number(value)
    if isinstance(number, Failure):
        return number
    # At 50 GB/s a 32-bit counter wraps around eleven times a second.
    return count(number) if value.valueType in _WIDE else Failure("a 32-bit counter")


_ONCE = ("name", "uuid", "bus_id", "enforced_power_limit_w", "clock_sm_max_mhz", "temperature_slowdown_c")

ONCE: dict[tuple[str, ...], Read] = {
    **{(field,): FIELDS[field] for field in _ONCE},
    ("temperature_slowdown_margin_c",): _slowdown_margin,
}
"""Fields of ``SampledGpu`` that are read once, before the first sample, and their calls."""

_AGAIN = ("temperature_c", "temperature_margin_c", "power_draw_w", "clock_sm_mhz", "performance_state")

AGAIN: dict[tuple[str, ...], Read] = {
    **{fields: read for fields, read in JOINT.items() if "utilization_gpu_percent" in fields},
    **{fields: read for fields, read in JOINT.items() if "memory_used_bytes" in fields},
    **{(field,): FIELDS[field] for field in _AGAIN},
    ("clock_event_reasons",): clock_event_reasons,
    ("processes",): lambda handle: len(compute_processes(handle)),
    ("pcie_sent_bytes", "pcie_received_bytes"): _pcie_bytes,
}
"""Fields of a sample and their calls, with the names and units of ``Gpu`` where it has them."""
