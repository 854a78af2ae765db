"""Which entry of ``nvidia-smi -q`` is which fact, in its text and in its XML.

An entry is found by its path: the headings above it and its name, joined by slashes; in small letters in the text
form, as they are in the XML. Of several paths the first one that tells a value counts: they are the names that the
drivers gave it in the course of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kdoctor.facts import gpus as facts
from kdoctor.snapshot.imports import values
from kdoctor.snapshot.imports.values import NotKnownError, Read, not_known

Entries = Mapping[str, str]
"""Path to text."""
_Groups = tuple[tuple[tuple[str, ...], ...], ...]
_ECC_HEADINGS = ("ecc errors", "ecc_errors")


_FIELDS: dict[str, tuple[Read, tuple[str, ...]]] = {
    "name": (values.free_text, ("product name", "product_name")),
    "uuid": (values.uuid, ("gpu uuid", "uuid")),
    "architecture": (values.free_text, ("product architecture", "product_architecture")),
    "minor_number": (values.count, ("minor number", "minor_number")),
    "memory_total_bytes": (values.mebibytes, ("fb memory usage/total", "fb_memory_usage/total")),
    "memory_used_bytes": (values.mebibytes, ("fb memory usage/used", "fb_memory_usage/used")),
    "bar1_total_bytes": (values.mebibytes, ("bar1 memory usage/total", "bar1_memory_usage/total")),
    "pcie_generation": (
        values.generation,
        ("pci/gpu link info/pcie generation/current", "pci/pci_gpu_link_info/pcie_gen/current_link_gen"),
    ),
    "pcie_generation_max": (
        values.generation,
        ("pci/gpu link info/pcie generation/max", "pci/pci_gpu_link_info/pcie_gen/max_link_gen"),
    ),
    "pcie_generation_gpu_max": (
        values.generation,
        ("pci/gpu link info/pcie generation/device max", "pci/pci_gpu_link_info/pcie_gen/max_device_link_gen"),
    ),
    "pcie_width": (
        values.width,
        ("pci/gpu link info/link width/current", "pci/pci_gpu_link_info/link_widths/current_link_width"),
    ),
    "pcie_width_max": (
        values.width,
        ("pci/gpu link info/link width/max", "pci/pci_gpu_link_info/link_widths/max_link_width"),
    ),
    "pcie_replay_counter": (values.count, ("pci/replays since reset", "pci/replay_counter")),
    "performance_state": (values.performance_state, ("performance state", "performance_state")),
    "compute_mode": (values.compute_mode, ("compute mode", "compute_mode")),
    "persistence_mode": (values.enabled, ("persistence mode", "persistence_mode")),
    "mig_mode": (values.enabled, ("mig mode/current", "mig_mode/current_mig")),
    "mig_mode_pending": (values.enabled, ("mig mode/pending", "mig_mode/pending_mig")),
    "ecc_mode": (values.enabled, ("ecc mode/current", "ecc_mode/current_ecc")),
    "ecc_mode_pending": (values.enabled, ("ecc mode/pending", "ecc_mode/pending_ecc")),
    "sram_threshold_exceeded": (
        values.yes,
        ("ecc errors/aggregate/sram threshold exceeded", "ecc_errors/aggregate/sram_threshold_exceeded"),
    ),
    "retired_pages_single_bit": (
        values.count,
        ("retired pages/single bit ecc", "retired_pages/multiple_single_bit_retirement/retired_count"),
    ),
    "retired_pages_double_bit": (
        values.count,
        ("retired pages/double bit ecc", "retired_pages/double_bit_retirement/retired_count"),
    ),
    "retired_pages_pending": (
        values.yes,
        (
            "retired pages/pending page blacklist",
            "retired pages/pending page retirement",
            "retired pages/pending",
            "retired_pages/pending_retirement",
            "retired_pages/pending_blacklist",
        ),
    ),
    "remapped_rows_correctable": (
        values.count,
        ("remapped rows/correctable error", "remapped_rows/remapped_row_corr"),
    ),
    "remapped_rows_uncorrectable": (
        values.count,
        ("remapped rows/uncorrectable error", "remapped_rows/remapped_row_unc"),
    ),
    "remapped_rows_pending": (values.yes, ("remapped rows/pending", "remapped_rows/remapped_row_pending")),
    "remapped_rows_failure": (
        values.yes,
        ("remapped rows/remapping failure occurred", "remapped_rows/remapped_row_failure"),
    ),
    "temperature_c": (values.degrees, ("temperature/gpu current temp", "temperature/gpu_temp")),
    "temperature_slowdown_c": (
        values.threshold,
        ("temperature/gpu slowdown temp", "temperature/gpu_temp_slow_threshold"),
    ),
    "temperature_shutdown_c": (
        values.threshold,
        ("temperature/gpu shutdown temp", "temperature/gpu_temp_max_threshold"),
    ),
    "temperature_margin_c": (
        values.degrees,
        ("temperature/gpu t.limit temp", "temperature/gpu current t.limit temp", "temperature/gpu_temp_tlimit"),
    ),
    "temperature_slowdown_margin_c": (
        values.offset,
        ("temperature/gpu slowdown t.limit temp", "temperature/gpu_temp_slow_tlimit_threshold"),
    ),
    "temperature_shutdown_margin_c": (
        values.offset,
        ("temperature/gpu shutdown t.limit temp", "temperature/gpu_temp_max_tlimit_threshold"),
    ),
    "fan_speed_percent": (values.percent, ("fan speed", "fan_speed")),
    "power_draw_w": (
        values.watts,
        (
            "gpu power readings/power draw",
            "gpu power readings/average power draw",
            "gpu power readings/instantaneous power draw",
            "power readings/power draw",
            "gpu_power_readings/power_draw",
            "gpu_power_readings/average_power_draw",
            "gpu_power_readings/instant_power_draw",
            "power_readings/power_draw",
        ),
    ),
    "enforced_power_limit_w": (
        values.watts,
        (
            "gpu power readings/current power limit",
            "power readings/enforced power limit",
            "gpu_power_readings/current_power_limit",
            "power_readings/enforced_power_limit",
        ),
    ),
    "default_power_limit_w": (
        values.watts,
        (
            "gpu power readings/default power limit",
            "power readings/default power limit",
            "gpu_power_readings/default_power_limit",
            "power_readings/default_power_limit",
        ),
    ),
    "clock_sm_mhz": (values.megahertz, ("clocks/sm", "clocks/sm_clock")),
    "clock_sm_max_mhz": (values.megahertz, ("max clocks/sm", "max_clocks/sm_clock")),
    "clock_memory_mhz": (values.megahertz, ("clocks/memory", "clocks/mem_clock")),
    "clock_memory_max_mhz": (values.megahertz, ("max clocks/memory", "max_clocks/mem_clock")),
    "utilization_gpu_percent": (values.percent, ("utilization/gpu", "utilization/gpu_util")),
    "utilization_memory_percent": (values.percent, ("utilization/memory", "utilization/memory_util")),
    "fabric_state": (values.fabric_state, ("fabric/state",)),
    "fabric_status": (values.fabric_status, ("fabric/status",)),
    "virtualization_mode": (
        values.virtualization_mode,
        ("gpu virtualization mode/virtualization mode", "gpu_virtualization_mode/virtualization_mode"),
    ),
    "addressing_mode": (values.addressing_mode, ("addressing mode", "addressing_mode")),
}
"""Field of ``Gpu`` to how it is read and where it stands."""

_REASONS: dict[int, tuple[str, ...]] = {
    facts.EVENT_GPU_IDLE: ("idle", "gpu_idle"),
    facts.EVENT_APPLICATIONS_CLOCKS: ("applications clocks setting", "applications_clocks_setting"),
    facts.EVENT_SW_POWER_CAP: ("sw power cap", "sw_power_cap"),
    facts.EVENT_HW_SLOWDOWN: ("hw slowdown", "hw_slowdown"),
    facts.EVENT_SYNC_BOOST: ("sync boost", "sync_boost"),
    facts.EVENT_SW_THERMAL_SLOWDOWN: ("sw thermal slowdown", "sw_thermal_slowdown"),
    facts.EVENT_HW_THERMAL_SLOWDOWN: (
        "hw slowdown/hw thermal slowdown",
        "hw thermal slowdown",
        "hw_thermal_slowdown",
    ),
    facts.EVENT_HW_POWER_BRAKE: (
        "hw slowdown/hw power brake slowdown",
        "hw slowdown/hw power brake",
        "hw power brake slowdown",
        "hw_power_brake_slowdown",
    ),
    facts.EVENT_DISPLAY_CLOCKS: ("display clock setting", "display clocks setting", "display_clocks_setting"),
}
_SLOWDOWNS = (
    facts.EVENT_HW_SLOWDOWN
    | facts.EVENT_HW_THERMAL_SLOWDOWN
    | facts.EVENT_HW_POWER_BRAKE
    | facts.EVENT_SW_THERMAL_SLOWDOWN
)
_NEEDED = _SLOWDOWNS | facts.EVENT_SW_POWER_CAP
"""Without these bits a mask would say of a slowed GPU that it is not."""


_SRAM_CORRECTED = ("sram correctable", "sram_correctable")
_SRAM_PARITY = ("sram uncorrectable parity", "sram_uncorrectable_parity")
_SRAM_SECDED = ("sram uncorrectable sec-ded", "sram_uncorrectable_secded")
_SRAM_UNCORRECTED = ("sram uncorrectable", "sram_uncorrectable")
_DRAM_CORRECTED = ("dram correctable", "dram_correctable")
_DRAM_UNCORRECTED = ("dram uncorrectable", "dram_uncorrectable")
_CORRECTED = (
    (("single bit/total", "single_bit/total"),),
    (_SRAM_CORRECTED, _DRAM_CORRECTED),
)
_UNCORRECTED = (
    (("double bit/total", "double_bit/total"),),
    (_SRAM_PARITY, _SRAM_SECDED, _DRAM_UNCORRECTED),
    (_SRAM_UNCORRECTED, _DRAM_UNCORRECTED),
)
"""The counters that make up a total, in the course of time: before Ampere a total of its own, then one counter for
all uncorrected SRAM errors, later two. The first group of which a counter is there counts."""

_ECC = {
    "ecc_corrected_volatile": ("volatile", _CORRECTED),
    "ecc_uncorrected_volatile": ("volatile", _UNCORRECTED),
    "ecc_corrected_aggregate": ("aggregate", _CORRECTED),
    "ecc_uncorrected_aggregate": ("aggregate", _UNCORRECTED),
}


class _AbsentError(Exception):
    """The dump does not name the field."""


def read_fields(entries: Entries) -> tuple[dict[str, Any], dict[str, str]]:
    """The facts that the entries of one GPU tell, and the words of those that they name without telling them."""
    facts_read: dict[str, Any] = {}
    errors: dict[str, str] = {}
    reads: dict[str, Callable[[], Any]] = {
        **{field: _reader(entries, read, paths) for field, (read, paths) in _FIELDS.items()},
        **{field: _ecc_reader(entries, scope, groups) for field, (scope, groups) in _ECC.items()},
        "clock_event_reasons": lambda: (_clock_event_reasons(entries),),
        "recovery_action": lambda: _recovery_action(entries),
    }
    for field, read in reads.items():
        try:
            facts_read[field] = read()
        except NotKnownError as error:
            errors[field] = str(error)
        except _AbsentError:
            pass
    return facts_read, errors


def _reader(entries: Entries, read: Read, paths: Iterable[str]) -> Callable[[], Any]:
    return lambda: _first(entries, read, paths)


def _first(entries: Entries, read: Read, paths: Iterable[str]) -> Any:
    """What the first path tells that tells anything: newer drivers give some readings in two ways."""
    words: NotKnownError | None = None
    for path in paths:
        try:
            return read(_find(entries, (path,)))
        except NotKnownError as error:
            words = words or error
        except _AbsentError:
            continue
    raise words or _AbsentError


def _ecc_reader(entries: Entries, scope: str, groups: _Groups) -> Callable[[], Any]:
    return lambda: _ecc_total(entries, scope, groups)


def _find(entries: Entries, paths: Iterable[str]) -> str:
    """The text of the first path that is there; or that of a heading which has a text in the place of entries."""
    above: str | None = None
    for path in paths:
        if path in entries:
            return entries[path]
        heading = path.rpartition("/")[0]
        while heading and above is None:
            above = entries.get(heading)
            heading = heading.rpartition("/")[0]
    if above is None:
        raise _AbsentError
    raise not_known(above)


def _clock_event_reasons(entries: Entries) -> int:
    """The bit mask. Where a bit that matters is not told, the mask stands only if it tells of a slowdown anyway."""
    mask = told = 0
    words: NotKnownError | None = None
    for bit, names in _REASONS.items():
        paths = [
            f"{heading}{name}"
            for name in names
            for heading in (
                "clocks event reasons/",
                "clocks throttle reasons/",
                "clocks_event_reasons/clocks_event_reason_",
                "clocks_throttle_reasons/clocks_throttle_reason_",
            )
        ]
        try:
            mask |= bit if values.active(_find(entries, paths)) else 0
            told |= bit
        except NotKnownError as error:
            words = error
        except _AbsentError:
            continue
    if told & _NEEDED == _NEEDED or mask & _SLOWDOWNS:
        return mask
    if words:
        raise words
    if told:
        raise NotKnownError("some reasons are missing")
    raise _AbsentError


def _ecc_total(entries: Entries, scope: str, groups: _Groups) -> int:
    """The sum; where a counter is not told, what the others tell if that is more than none: at least so many."""
    for group in groups:
        paths = [[f"{heading}/{scope}/{name}" for heading in _ECC_HEADINGS for name in names] for names in group]
        if any(path in entries for path in paths[0]):
            return _sum(entries, paths)
    heading = next((entries[name] for name in _ECC_HEADINGS if name in entries), None)
    if heading is None:
        raise _AbsentError
    raise not_known(heading)


def _sum(entries: Entries, counters: Iterable[Iterable[str]]) -> int:
    total = 0
    missing: NotKnownError | None = None
    for paths in counters:
        try:
            total += values.count(_find(entries, paths))
        except NotKnownError as error:
            missing = error
        except _AbsentError:
            missing = NotKnownError("some counters are missing")
    if missing and not total:
        raise missing
    return total


def _recovery_action(entries: Entries) -> str:
    """What the driver asks for; older ones say only whether a reset is needed."""
    try:
        return str(values.recovery_action(_find(entries, ("gpu recovery action", "gpu_recovery_action"))))
    except _AbsentError:
        wanted = {
            "drain-and-reset": ("drain and reset recommended", "drain_and_reset_recommended"),
            "reset": ("reset required", "reset_required"),
        }
        for action, names in wanted.items():
            paths = [f"{heading}/{name}" for name in names for heading in ("gpu reset status", "gpu_reset_status")]
            if any(entries.get(path, "").strip().lower() == "yes" for path in paths):
                return action
        raise
