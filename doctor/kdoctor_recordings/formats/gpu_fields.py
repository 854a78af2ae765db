"""Which entry of ``nvidia-smi -q`` is which fact, in its text and in its XML.

An entry is found by its path: the headings above it and its name, joined by slashes, in lower case and without
hyphens. If a field has several paths, the first one with a value counts: drivers have renamed fields.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from kdoctor.facts import gpus as facts
from kdoctor_recordings.formats import values
from kdoctor_recordings.formats.part import GpuPart
from kdoctor_recordings.formats.values import NotKnownError, Read, not_known, read_processes

_HEADINGS = (
    r"accounted processes|applications clocks|bar1 memory usage|c2c mode|capabilities"
    r"|(cc|conf compute) protected memory usage|clock policy|clocks( (event|throttle) reasons counters)?"
    r"|default applications clocks|deferred clocks"
    r"|dram encryption mode|driver model|edpp multiplier|encoder stats|fb memory usage|fbc stats|gpu c2c mode"
    r"|gpu memory power readings|gpu operation mode|gpu power readings|gpu virtualization mode|ibmnpu"
    r"|inforom (bbx( object)? flush|time data|version)|max clocks|max customer boost clocks|mig devices?|mig mode"
    r"|module power readings|pci|platform ?info|power profiles|power readings|power smoothing|samples|processes"
    r"|supported clocks|supported gpu target temp|temperature|utilization|vgpu device capability|vgpu driver capability"
    r"|voltage|workload power profiles|.* samples"
)
"""Headings of settings and measurements. What is below them and not read is not about the GPU's health.

Driver releases add entries. One that is not listed here may report a fault, so it is shown as not understood.
Source: https://docs.nvidia.com/deploy/nvidia-smi/ and recorded output of drivers 460 to 610.
"""
_ENTRIES = (
    r"accounting mode( buffer size)?|addressing mode|board id|(board|gpu|fru|gpu fru) part number|display (mode|active"
    r"|attached)|gpu module id|module id|(gpu )?pdi|gsp firmware version|multigpu board|minor number|serial( number)?"
    r"|product brand|sparse operation mode|vbios version|hostname|gom|timestamp"
    r"|ecc errors/(volatile|aggregate)/((single|double) bit/.*|[sd]ram (un)?correctable.*)"
    r"|ecc errors/aggregate uncorrectable sram sources/.*"
    r"|fabric/(cliqueid|clusteruuid|health/partition assigned)"
    r"|remapped rows/(inactive (un)?correctable error|(bank remap availability|row remapper) histogram(/.*)?)"
    r"|retired pages/.*(pagelist|pending|addresses?|timestamp).*"
    r"|clocks (event|throttle) reasons/.*(idle|applications clocks|unknown)( setting)?"
)
_ENTRY = re.compile(_ENTRIES, re.IGNORECASE)
_KNOWN = re.compile(rf"(?:{_HEADINGS})(?:/.*)?|{_ENTRIES}", re.IGNORECASE)
_EMPTY = frozenset({"", "n/a", "none", "not supported"})
"""Values that report nothing."""
_WELL = frozenset({"0", "no", "false", "disabled", "not active", "healthy", "success"})
_FAULT = re.compile(r"fail|error|fault|unhealthy|degrad|corrupt|\blost\b|damage|err!|requires? reset", re.IGNORECASE)
"""Words of a fault. An entry that has one is not known, whatever heading it is below."""
PROCESS = frozenset(
    {"process id", "type", "name", "used gpu memory", "gpu instance id", "compute instance id", "protected"}
)
"""The entries of a process."""


def is_entry(path: str) -> bool:
    """Whether this is the path of an entry that kdoctor knows and does not read."""
    return bool(_ENTRY.fullmatch(path))


def is_heading(text: str) -> bool:
    """Whether this is the name of a heading that kdoctor knows."""
    return bool(_KNOWN.fullmatch(text.strip()))


def not_understood(entries: Mapping[str, str], read: Collection[str]) -> Iterator[str]:
    """The entries that kdoctor does not know, with their values.

    Args:
        entries: path to text.
        read: the paths that are read.
    """
    for path, text in entries.items():
        value = text.strip().lower()
        if path in read or value in _EMPTY:
            continue
        if not _KNOWN.fullmatch(path) or _may_be_fault(path, value):
            yield f"{path}: {text}"


def _may_be_fault(path: str, value: str) -> bool:
    """Whether a known entry, or one below a known heading, reports what may be a fault."""
    if _FAULT.search(value):
        return True
    return value not in _WELL and not _ENTRY.fullmatch(path) and bool(_FAULT.search(path.rpartition("/")[2]))


Entries = Mapping[str, str]
"""Path to text."""

_LINK = "pci/gpu link info"

FIELDS: Mapping[str, tuple[Read, str, str]] = {
    "name": (values.free_text, "product name", "name|gpu_name"),
    "uuid": (values.uuid, "gpu uuid", ""),
    "architecture": (values.free_text, "product architecture", ""),
    "minor_number": (values.count, "minor number", ""),
    "memory_total_bytes": (values.mebibytes, "fb memory usage/total", "memory.total"),
    "memory_used_bytes": (values.mebibytes, "fb memory usage/used", "memory.used"),
    "bar1_total_bytes": (values.mebibytes, "bar1 memory usage/total", ""),
    "pcie_generation": (
        values.generation,
        f"{_LINK}/pcie generation/current",
        "pcie.link.gen.current|pcie.link.gen.gpucurrent",
    ),
    "pcie_generation_max": (values.generation, "pci/gpu link info/pcie generation/max", "pcie.link.gen.max"),
    "pcie_generation_gpu_max": (values.generation, f"{_LINK}/pcie generation/device max", "pcie.link.gen.gpumax"),
    "pcie_width": (values.width, "pci/gpu link info/link width/current", "pcie.link.width.current"),
    "pcie_width_max": (values.width, "pci/gpu link info/link width/max", "pcie.link.width.max"),
    "pcie_replay_counter": (values.count, "pci/replays since reset", ""),
    "performance_state": (values.performance_state, "performance state", "pstate"),
    "compute_mode": (values.compute_mode, "compute mode", "compute_mode"),
    "persistence_mode": (values.enabled, "persistence mode", "persistence_mode"),
    "mig_mode": (values.enabled, "mig mode/current", "mig.mode.current"),
    "mig_mode_pending": (values.enabled, "mig mode/pending", "mig.mode.pending"),
    "ecc_mode": (values.enabled, "ecc mode/current", "ecc.mode.current"),
    "ecc_mode_pending": (values.enabled, "ecc mode/pending", "ecc.mode.pending"),
    "sram_threshold_exceeded": (
        values.yes,
        "ecc errors/aggregate/sram threshold exceeded",
        "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
    ),
    "retired_pages_single_bit": (
        values.count,
        "retired pages/single bit ecc|retired pages/multiple single bit retirement/retired count",
        "retired_pages.single_bit_ecc.count|retired_pages.sbe",
    ),
    "retired_pages_double_bit": (
        values.count,
        "retired pages/double bit ecc|retired pages/double bit retirement/retired count",
        "retired_pages.double_bit.count|retired_pages.dbe",
    ),
    "retired_pages_pending": (
        values.yes,
        (
            "retired pages/pending page blacklist|retired pages/pending page retirement|retired pages/pending"
            "|retired pages/pending retirement|retired pages/pending blacklist"
        ),
        "retired_pages.pending",
    ),
    "remapped_rows_correctable": (values.count, "remapped rows/correctable error", "remapped_rows.correctable"),
    "remapped_rows_uncorrectable": (values.count, "remapped rows/uncorrectable error", "remapped_rows.uncorrectable"),
    "remapped_rows_pending": (values.yes, "remapped rows/pending", "remapped_rows.pending"),
    "remapped_rows_failure": (values.yes, "remapped rows/remapping failure occurred", "remapped_rows.failure"),
    "channel_repair_pending": (values.yes, "ecc errors/channel repair pending", ""),
    "tpc_repair_pending": (values.yes, "ecc errors/tpc repair pending", ""),
    "unrepairable_memory": (values.yes, "ecc errors/unrepairable memory", ""),
    "temperature_c": (values.degrees, "temperature/gpu current temp", "temperature.gpu"),
    "temperature_slowdown_c": (values.threshold, "temperature/gpu slowdown temp", ""),
    "temperature_operating_max_c": (values.threshold, "temperature/gpu max operating temp", ""),
    "temperature_shutdown_c": (values.threshold, "temperature/gpu shutdown temp", ""),
    "temperature_margin_c": (values.degrees, "temperature/gpu t.limit temp|temperature/gpu current t.limit temp", ""),
    "temperature_slowdown_margin_c": (values.offset, "temperature/gpu slowdown t.limit temp", ""),
    "temperature_shutdown_margin_c": (values.offset, "temperature/gpu shutdown t.limit temp", ""),
    "fan_speed_percent": (values.percent, "fan speed", "fan.speed"),
    "power_draw_w": (
        values.watts,
        (
            "gpu power readings/power draw|gpu power readings/average power draw"
            "|gpu power readings/instantaneous power draw|gpu power readings/instant power draw"
            "|power readings/power draw"
        ),
        "power.draw|power.draw.average|power.draw.instant",
    ),
    "enforced_power_limit_w": (
        values.watts,
        (
            "gpu power readings/current power limit|gpu power readings/gpu ceiling power limit/current power limit"
            "|power readings/enforced power limit"
        ),
        "enforced.power.limit|power.limit",
    ),
    "default_power_limit_w": (
        values.watts,
        (
            "gpu power readings/default power limit|gpu power readings/gpu ceiling power limit/default power limit"
            "|power readings/default power limit"
        ),
        "power.default_limit",
    ),
    "clock_sm_mhz": (values.megahertz, "clocks/sm", "clocks.current.sm|clocks.sm"),
    "clock_sm_max_mhz": (values.megahertz, "max clocks/sm", "clocks.max.sm"),
    "clock_memory_mhz": (values.megahertz, "clocks/memory", "clocks.current.memory|clocks.mem"),
    "clock_memory_max_mhz": (values.megahertz, "max clocks/memory", "clocks.max.memory|clocks.max.mem"),
    "utilization_gpu_percent": (values.percent, "utilization/gpu", "utilization.gpu"),
    "utilization_memory_percent": (values.percent, "utilization/memory", "utilization.memory"),
    "fabric_state": (values.fabric_state, "fabric/state", "fabric.state"),
    "fabric_status": (values.fabric_status, "fabric/status", "fabric.status"),
    "virtualization_mode": (values.virtualization_mode, "gpu virtualization mode/virtualization mode", ""),
    "addressing_mode": (values.addressing_mode, "addressing mode", "addressing_mode"),
    "ecc_corrected_volatile": (values.count, "", "ecc.errors.corrected.volatile.total"),
    "ecc_corrected_aggregate": (values.count, "", "ecc.errors.corrected.aggregate.total"),
    "ecc_uncorrected_volatile": (values.count, "", "ecc.errors.uncorrected.volatile.total"),
    "ecc_uncorrected_aggregate": (values.count, "", "ecc.errors.uncorrected.aggregate.total"),
    "recovery_action": (values.recovery_action, "", "gpu_recovery_action"),
}
"""Field of ``Gpu`` to how it is read, its paths, and its columns of ``--query-gpu``. Bars divide names of one field."""
_PATHS = {field: (read, paths.split("|")) for field, (read, paths, _) in FIELDS.items() if paths}

_REASON_HEADINGS = ("clocks event reasons/", "clocks throttle reasons/")
_REASONS: dict[int, tuple[str, ...]] = {
    facts.EVENT_GPU_IDLE: ("idle", "gpu idle"),
    facts.EVENT_APPLICATIONS_CLOCKS: ("applications clocks setting",),
    facts.EVENT_SW_POWER_CAP: ("sw power cap",),
    facts.EVENT_HW_SLOWDOWN: ("hw slowdown",),
    facts.EVENT_SYNC_BOOST: ("sync boost",),
    facts.EVENT_SW_THERMAL_SLOWDOWN: ("sw thermal slowdown",),
    facts.EVENT_HW_THERMAL_SLOWDOWN: ("hw slowdown/hw thermal slowdown", "hw thermal slowdown"),
    facts.EVENT_HW_POWER_BRAKE: (
        "hw slowdown/hw power brake slowdown",
        "hw slowdown/hw power brake",
        "hw power brake slowdown",
    ),
    facts.EVENT_DISPLAY_CLOCKS: ("display clock setting", "display clocks setting"),
}
_SLOWDOWNS = (
    facts.EVENT_HW_SLOWDOWN
    | facts.EVENT_HW_THERMAL_SLOWDOWN
    | facts.EVENT_HW_POWER_BRAKE
    | facts.EVENT_SW_THERMAL_SLOWDOWN
)
_NEEDED = _SLOWDOWNS | facts.EVENT_SW_POWER_CAP
"""Without these bits, a mask could report a slowed GPU as healthy."""

_CORRECTED = (("single bit/total",), ("sram correctable", "dram correctable"))
_UNCORRECTED = (
    ("double bit/total",),
    ("sram uncorrectable parity", "sram uncorrectable secded", "dram uncorrectable"),
    ("sram uncorrectable", "dram uncorrectable"),
)
"""Groups of counters that add up to a total. The first group whose first counter is present counts: before Ampere the
output has a total, later one counter for all uncorrected SRAM errors, and now two."""

_ECC = {
    "ecc_corrected_volatile": ("volatile", _CORRECTED),
    "ecc_uncorrected_volatile": ("volatile", _UNCORRECTED),
    "ecc_corrected_aggregate": ("aggregate", _CORRECTED),
    "ecc_uncorrected_aggregate": ("aggregate", _UNCORRECTED),
}


_FABRIC_HEALTH = {
    "bandwidth": "full",
    "route recovery in progress": "false",
    "route unhealthy": "false",
    "access timeout recovery": "false",
    "incorrect configuration": "none",
    "summary": "healthy",
}
"""Entries of the fabric's health to what each reports if healthy. The summary counts if no other entry explains it."""
_READ_ELSEWHERE = frozenset(
    {
        "processes",
        "gpu recovery action",
        "gpu reset status/reset required",
        "gpu reset status/drain and reset recommended",
        *(f"fabric/health/{name}" for name in _FABRIC_HEALTH),
        *(f"ecc errors/{scope}/{name}" for scope, groups in _ECC.values() for group in groups for name in group),
        *(heading + name for heading in _REASON_HEADINGS for names in _REASONS.values() for name in names),
    }
)
READ = frozenset(path for _, paths in _PATHS.values() for path in paths) | _READ_ELSEWHERE
"""The paths that become facts."""


class AbsentError(Exception):
    """The output does not name the field."""


def read_gpu(
    bus_id: str | None, entries: Entries, processes: Sequence[Mapping[str, str]], *, cut: bool, more: bool = False
) -> GpuPart:
    """The facts of one GPU, and the text of those entries that have no value.

    Args:
        bus_id: the address, if it is known.
        entries: path to text.
        processes: names and texts of each process.
        cut: whether the file ends within this GPU.
        more: whether the file ends within the list of processes.
    """
    read: dict[str, Any] = {}
    errors: dict[str, str] = {}
    readers: dict[str, Callable[[Entries], Any]] = {
        **{field: partial(_first, reader=reader, paths=paths) for field, (reader, paths) in _PATHS.items()},
        **{field: partial(_ecc_total, scope=scope, groups=groups) for field, (scope, groups) in _ECC.items()},
        "clock_event_reasons": clock_event_reasons,
        "recovery_action": _recovery_action,
        "fabric_problems": fabric_problems,
        "processes": lambda entries: read_processes(_find(entries, ("processes",)), processes, more=more),
        "graphics_processes": lambda entries: read_processes(
            _find(entries, ("processes",)), processes, more=more, graphics=True
        ),
    }
    for field, reader in readers.items():
        try:
            read[field] = reader(entries)
        except NotKnownError as error:
            errors[field] = str(error)
        except AbsentError:
            pass
    return GpuPart(
        bus_id=bus_id,
        uuid=read.get("uuid"),
        facts=read,
        errors=errors,
        cut=cut,
        not_understood=tuple(not_understood(entries, READ)),
    )


def _first(entries: Entries, reader: Read, paths: Iterable[str]) -> Any:
    """The value of the first path that has one: newer drivers report some readings twice."""
    first_error: NotKnownError | None = None
    for path in paths:
        try:
            return reader(_find(entries, (path,)))
        except NotKnownError as error:
            first_error = first_error or error
        except AbsentError:
            continue
    raise first_error or AbsentError


def _find(entries: Entries, paths: Iterable[str]) -> str:
    """The text of the first path that is present.

    Raises:
        NotKnownError: a heading above has a text in place of entries.
        AbsentError: nothing is present.
    """
    above: str | None = None
    for path in paths:
        if path in entries:
            return entries[path]
        heading = path.rpartition("/")[0]
        while heading and above is None:
            above = entries.get(heading)
            heading = heading.rpartition("/")[0]
    if above is None:
        raise AbsentError
    raise not_known(above)


def clock_event_reasons(entries: Entries) -> tuple[int]:
    """The bit mask. If a bit that matters is missing, the mask is valid only if it shows a slowdown anyway."""
    mask = present = 0
    unread: NotKnownError | None = None
    for bit, names in _REASONS.items():
        try:
            paths = [heading + name for name in names for heading in _REASON_HEADINGS]
            mask |= bit if values.active(_find(entries, paths)) else 0
            present |= bit
        except NotKnownError as error:
            unread = error
        except AbsentError:
            continue
    if present & facts.EVENT_HW_SLOWDOWN and not mask & facts.EVENT_HW_SLOWDOWN:
        present |= facts.EVENT_HW_THERMAL_SLOWDOWN | facts.EVENT_HW_POWER_BRAKE  # its causes; old drivers name it alone
    if present & _NEEDED == _NEEDED or mask & _SLOWDOWNS:
        return (mask,)
    if not unread and not present:
        raise AbsentError
    raise unread or NotKnownError("some reasons are missing")


def _ecc_total(entries: Entries, scope: str, groups: Iterable[Iterable[str]]) -> int:
    """The sum. If a counter has no value, the sum of the others is a lower bound, and counts if it is above zero."""
    for group in groups:
        paths = [f"ecc errors/{scope}/{name}" for name in group]
        if paths[0] in entries:
            return _sum(entries, paths)
    if "ecc errors" not in entries:
        raise AbsentError
    raise not_known(entries["ecc errors"])


def _sum(entries: Entries, paths: Iterable[str]) -> int:
    total = 0
    missing: NotKnownError | None = None
    for path in paths:
        try:
            total += values.count(_find(entries, (path,)))
        except NotKnownError as error:
            missing = error
        except AbsentError:
            missing = missing or NotKnownError("some counters are missing")
    if missing and not total:
        raise missing
    return total


def fabric_problems(entries: Entries) -> tuple[str, ...]:
    """The entries of the fabric's health that are neither healthy nor empty."""
    paths = {name: f"fabric/health/{name}" for name in _FABRIC_HEALTH}
    found = {name: entries[path] for name, path in paths.items() if path in entries}
    read = {name: text for name, text in found.items() if text.lower() not in values.WITHOUT_VALUE}
    if not read:
        raise not_known(next(iter(found.values()))) if found else AbsentError
    bad = {name: text for name, text in read.items() if text.lower() != _FABRIC_HEALTH[name]}
    return tuple(f"{name}: {text}" for name, text in bad.items() if name != "summary" or len(bad) == 1)


def _recovery_action(entries: Entries) -> str:
    """The requested action; older drivers report only whether a reset is needed."""
    try:
        return str(values.recovery_action(_find(entries, ("gpu recovery action",))))
    except AbsentError:
        for action, name in (("drain-and-reset", "drain and reset recommended"), ("reset", "reset required")):
            if entries.get(f"gpu reset status/{name}", "").strip().lower() == "yes":
                return action
        raise
