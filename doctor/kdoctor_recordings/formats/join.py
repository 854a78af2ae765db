"""Joins several dumps of one machine, and refuses dumps that cannot be from the same machine."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import Any, TypeVar

from kdoctor.errors import UsageError
from kdoctor.facts import FactGroup, Gpu, GpuPair, Gpus, Kernel, KernelDriver, KernelLog, KernelLogEvent, PciDevices
from kdoctor.text.lists import counted, some
from kdoctor_recordings.facts import Diagnostic, Diagnostics, ImportedLines
from kdoctor_recordings.formats.part import CUT, GpuPart, Kind, PairPart, Part
from kdoctor_recordings.formats.unread import collected

Group = TypeVar("Group", bound=FactGroup)
_KIND_ORDER: tuple[Kind, ...] = (
    "nvidia-smi -q -x",
    "nvidia-smi -q",
    "nvidia-smi",
    "nvidia-smi --query-gpu",
    "nvidia-smi nvlink -s",
    "nvidia-smi -L",
    "nvidia-smi topo -m",
    "nvidia-smi topo -p2p",
    "nvidia-smi's failure",
    "this text",
)
"""Dumps of GPUs, the ones that identify the GPUs best first."""
_READINGS = ("nvidia-smi -q -x", "nvidia-smi -q")
_FIXED = ("name", "minor_number", "memory_total_bytes", "architecture")
"""Fields of a GPU that never change: dumps that differ in them are from different machines."""
_GPU_FIELDS = tuple(field.name for field in fields(Gpu) if field.name not in {"index", "numbered", "errors"})
_NEWER_ENTRIES = ("fabric_problems", "channel_repair_pending", "tpc_repair_pending", "unrepairable_memory")
"""Fields of a GPU that ``nvidia-smi -q`` reports with newer drivers only."""
_OLDER_DRIVER = "not reported by this driver"
_WAYS = ("level", "nvlinks")
_PAIR_FIELDS = ("nvlinks", "p2p_read", "p2p_write", "p2p_nvlink")
_DRIVER_FIELDS = ("driver_version", "cuda_driver_version", "count", "nvml_version", "conf_compute")


@dataclass(kw_only=True)
class _Device:
    parts: list[tuple[Part, GpuPart]] = field(default_factory=list)

    def get(self, key: str) -> tuple[Part, Any] | None:
        """The value of an identity, and the dump that it is from."""
        return next(((part, getattr(gpu, key)) for part, gpu in self.parts if _identity(gpu, key) is not None), None)


class _OtherMachineError(UsageError):
    """Two dumps cannot be from one machine."""

    def __init__(self, first: Part, second: Part, what: str) -> None:
        files = f"{first.file} ({first.kind}) and {second.file} ({second.kind})"
        why = f"{files} are not from the same machine, or not from the same time: {what}"
        super().__init__(why, hint="Import them separately.")
        self.parts = first, second


def first_machine(parts: list[Part]) -> list[Part]:
    """The dumps of a file up to one that contradicts the others, or from it on if only there a GPU is, or fails."""
    try:
        join(parts)
    except _OtherMachineError as error:
        if not (place := max(map(parts.index, error.parts))):
            return parts  # one dump contradicts itself
        first, second = parts[:place], parts[place:]
        is_first = any(part.gpus for part in first) or not any(part.gpus for part in second)
        is_first = is_first and not (any(map(_fails, second)) and not any(map(_fails, first)))
        kept = first_machine(first if is_first else second)
        which = "first" if is_first else "second"
        note = f"{error.message}. Only the {which} one in the text is judged; put the other one into another file"
        return [replace(kept[0], notes=(*kept[0].notes, note)), *kept[1:]]
    except UsageError:
        pass  # another file may complete them
    return parts


def _fails(part: Part) -> bool:
    """Whether the driver, or a GPU, does not respond."""
    return "error" in part.driver or any("handle" in gpu.errors for gpu in part.gpus)


def join(parts: Sequence[Part]) -> tuple[dict[type[FactGroup], FactGroup], tuple[str, ...]]:
    """The groups of facts of all dumps, and notes for the user.

    Raises:
        UsageError: the dumps cannot be from the same machine.
    """
    found: dict[type[FactGroup], FactGroup] = {}
    notes = [note for part in parts for note in part.notes]
    of_gpus = [part for part in parts if part.kind in _KIND_ORDER and (part.gpus or part.kind != "this text")]
    if of_gpus:
        gpus, more = _gpus(of_gpus)
        found[Gpus] = gpus
        notes += more
    driver = _kernel_driver(parts)
    if driver:
        found[KernelDriver] = driver
    if modules := [group.modules for _, group in _of(parts, Kernel) if group.modules is not None]:
        found[Kernel] = Kernel(modules=tuple(sorted({name for names in modules for name in names})))
    pci = _of(parts, PciDevices)
    if pci:
        found[PciDevices] = _pci(pci)
    if logs := [log for _, log in _of(parts, KernelLog)]:
        found[KernelLog] = _logs(logs)
    if verdicts := _of(parts, Diagnostics):
        results = [result for _, group in verdicts for result in group.results]
        found[Diagnostics] = Diagnostics(results=tuple(_without_switches(results, found.get(Gpus))))
    unread = collected(line for part in parts for line in part.unread)
    if unread:
        found[ImportedLines] = unread
        files = some(tuple(dict.fromkeys(line.file for line in unread.lines)), 3)
        notes.append(f"{files}: {counted(unread.count, 'line was', 'lines were')} not understood (-v lists them)")
    _compare(found, of_gpus, pci)
    _compare_logs(found, parts, pci)
    return found, tuple(notes)


def _of(parts: Sequence[Part], kind: type[Group]) -> list[tuple[Part, Group]]:
    """The groups of one kind, with the dumps that they are from."""
    return [(part, group) for part in parts for group in part.groups if isinstance(group, kind)]


def _gpus(parts: Sequence[Part]) -> tuple[Gpus, list[str]]:
    notes: list[str] = []
    facts, errors = _driver(parts)
    devices, unnumbered = _index(_devices(parts))
    if unnumbered:
        files = some(tuple(dict.fromkeys(device.parts[0][0].file for device in unnumbered)), 3)
        notes.append(f"{files}: no index of {counted(len(unnumbered), 'GPU')} is in it, so the address is the name")
    listed = [gpu for part in parts if part.kind == "nvidia-smi -L" for gpu in part.gpus]
    if listed and not any(gpu.cut for gpu in listed) and {gpu.index for gpu in listed} == {*range(len(devices))}:
        facts.setdefault("count", len(devices))
    count = facts.get("count")
    if isinstance(count, int) and count > len(devices) and facts.get("state", "ready") == "ready":
        cut = any(gpu.cut for part in parts for gpu in part.gpus)
        why = "the output may be cut off" if cut else "the others are not in it"
        errors["devices"] = f"{counted(count, 'GPU')} attached, {len(devices)} listed: {why}"
        notes.append(f"{', '.join(dict.fromkeys(part.file for part in parts))}: {errors['devices']}")
    missing = f"not in {', '.join(sorted({part.kind for part in parts}, key=_KIND_ORDER.index))}"
    errors |= {name: missing for name in _DRIVER_FIELDS if name not in facts and name not in errors}
    built = tuple(
        replace(_gpu(index, device, missing), numbered=device not in unnumbered) for index, device in devices.items()
    )
    pairs = tuple(_pairs(parts, built, missing))
    unknown = tuple(_not_understood(parts))
    if unknown:
        notes.append(
            f"{counted(len(unknown), 'line was', 'lines were')} not understood (check gpu.readings lists them)"
        )
    found = Gpus(**{"state": "ready", **facts}, devices=built, pairs=pairs, errors=errors, not_understood=unknown)
    return found, notes


def _not_understood(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        lines = Counter([*part.not_understood, *(line for gpu in part.gpus for line in gpu.not_understood)])
        for line, times in lines.items():
            yield f"{part.file}: {line}" + (f" ({times} times)" if times > 1 else "")


def _driver(parts: Sequence[Part]) -> tuple[dict[str, Any], dict[str, str]]:
    """The facts of the driver. Versions must be the same in all dumps; the last count wins."""
    facts: dict[str, Any] = {}
    errors: dict[str, str] = {}
    sources: dict[str, Part] = {}
    for part in parts:
        errors |= {name: text for name, text in part.driver_errors.items() if name not in facts}
        for name, value in part.driver.items():
            if name in {"driver_version", "cuda_driver_version"} and facts.get(name, value) != value:
                raise _OtherMachineError(sources[name], part, f"{name.replace('_', ' ')} {facts[name]} and {value}")
            if name == "count" and name in facts:
                if _contradicts(sources[name], facts[name], part, value):
                    raise _OtherMachineError(sources[name], part, f"{facts[name]} GPUs and {value}")
                if part.kind not in _READINGS:
                    continue
            facts[name], sources[name] = value, part
            errors.pop(name, None)
    working = next((part for part in parts if part.gpus), None)
    # A paste may show a container, in which nvidia-smi fails, and its host.
    if working and facts.get("state", "ready") != "ready" and sources["state"].file != working.file:
        raise _OtherMachineError(sources["state"], working, "nvidia-smi fails in the first, and works in the second")
    return facts, errors


def _contradicts(first: Part, count: int, second: Part, other: int) -> bool:
    """Whether two numbers of GPUs cannot be from one machine. ``nvidia-smi -q`` also counts GPUs that do not answer."""
    is_total, is_other_total = first.kind in _READINGS, second.kind in _READINGS
    if is_total == is_other_total:
        return count != other
    total, listed, readings = (count, other, first) if is_total else (other, count, second)
    answering = sum("performance_state" in gpu.facts for gpu in readings.gpus)
    return not answering <= listed <= total


def _devices(parts: Sequence[Part]) -> list[_Device]:
    devices: list[_Device] = []
    for part in sorted(parts, key=lambda part: _KIND_ORDER.index(part.kind)):
        for gpu in part.gpus:
            device = next((device for device in devices if _is_same(device, part, gpu)), None)
            if device is None:
                device = _Device()
                devices.append(device)
            device.parts.append((part, gpu))
    return devices


def _identity(gpu: GpuPart, key: str) -> Any:
    value = getattr(gpu, key)
    # Dumps with hidden serial numbers have zeros.
    return None if key == "uuid" and value and not value.removeprefix("GPU-").strip("0-") else value


def _is_same(device: _Device, part: Part, gpu: GpuPart) -> bool:
    """Whether the part is about this GPU.

    Raises:
        UsageError: one identity matches, and another does not.
    """
    same: list[str] = []
    differs: list[tuple[str, Part, Any]] = []
    for key in ("uuid", "bus_id", "index"):
        mine, other = _identity(gpu, key), device.get(key)
        if mine is None or other is None:
            continue
        if mine == other[1]:
            same.append(key)
        else:
            differs.append((key, *other))
    if same and differs:
        key, other_part, value = differs[0]
        what = f"GPU {getattr(gpu, same[0])} has {key} {value} in the first and {getattr(gpu, key)} in the second"
        raise _OtherMachineError(other_part, part, what)
    return bool(same)


def _index(devices: Sequence[_Device]) -> tuple[dict[int, _Device], list[_Device]]:
    """The GPUs by index, and those whose index is in no dump. Theirs is only a free number."""
    indexed = {index[1]: device for device in devices if (index := device.get("index"))}
    nameless = next(
        (device for device in indexed.values() if not device.get("uuid") and not device.get("bus_id")), None
    )
    unplaced = next((device for device in devices if device.get("index") is None), None)
    if nameless and unplaced:
        first, second = nameless.parts[0][0], unplaced.parts[0][0]
        raise UsageError(
            f"{second.file} ({second.kind}) lists only some of the GPUs, and they cannot be matched with those in "
            f"{first.file} ({first.kind})",
            hint="Add a dump of all GPUs, or the output of nvidia-smi -L.",
        )
    free = (index for index in range(len(devices) + len(indexed)) if index not in indexed)
    unnumbered = [device for device in devices if device.get("index") is None]
    indexed |= {next(free): device for device in unnumbered}
    return dict(sorted(indexed.items())), unnumbered


def _gpu(index: int, device: _Device, missing: str) -> Gpu:
    facts: dict[str, Any] = {}
    errors: dict[str, str] = {}
    sources: dict[str, Part] = {}
    # The most detailed kind comes last and wins; of one kind, the dump that was given last.
    for part, gpu in sorted(device.parts, key=lambda item: -_KIND_ORDER.index(item[0].kind)):
        for name, value in {**gpu.facts, "bus_id": gpu.bus_id, "uuid": gpu.uuid}.items():
            if value is None:
                continue
            if name in _FIXED and facts.get(name, value) != value:
                what = f"GPU {index} has {name.replace('_', ' ')} {facts[name]} in the first and {value} in the second"
                raise _OtherMachineError(sources[name], part, what)
            facts[name], sources[name] = value, part
            errors.pop(name, None)
        errors |= {name: text for name, text in gpu.errors.items() if name not in facts or name == "nvlinks"}
    readings = [gpu for part, gpu in device.parts if part.kind in _READINGS]
    if masks := tuple(mask for gpu in readings for mask in gpu.facts.get("clock_event_reasons", ())):
        facts["clock_event_reasons"] = masks
    reason = CUT if readings and all(gpu.cut for gpu in readings) else missing
    if any(_is_whole(gpu) for gpu in readings):
        errors |= {name: _OLDER_DRIVER for name in _NEWER_ENTRIES if facts.get(name) is None and name not in errors}
    errors |= {name: reason for name in _GPU_FIELDS if facts.get(name) is None and name not in errors}
    return Gpu(index=index, **facts, errors=errors)


def _is_whole(gpu: GpuPart) -> bool:
    """Whether this is all that ``nvidia-smi -q`` reports about the GPU, and not a part of it (``-d``)."""
    return not gpu.cut and {"uuid", "processes"} <= {*gpu.facts, *gpu.errors}


def _pairs(parts: Sequence[Part], gpus: Sequence[Gpu], missing: str) -> Iterator[GpuPair]:
    """Each pair of the listed GPUs, with the reason for every value that is in no dump."""
    for one, other in combinations(gpus, 2):
        first, second = one.index, other.index
        facts: dict[str, Any] = {}
        errors: dict[str, str] = {}
        source = parts[0]
        for part in parts:
            pair = part.pairs.get((first, second), PairPart())
            if any(facts.get(way, value) != value for way, value in pair.facts.items() if way in _WAYS):
                raise _OtherMachineError(source, part, f"GPU {first} and GPU {second} are connected in two ways")
            source = part if "nvlinks" in pair.facts else source
            facts |= pair.facts
            errors |= pair.errors
        level_error = errors.pop("level", missing)
        errors |= {name: missing for name in _PAIR_FIELDS if name not in errors}
        yield replace(
            GpuPair.of(one, other),
            **facts,
            error=None if facts.get("level") else level_error,
            errors={name: text for name, text in errors.items() if name not in facts},
        )


def _kernel_driver(parts: Sequence[Part]) -> KernelDriver | None:
    """The kernel module: its own file before nvidia-smi, which reports it for driver 610 and later."""
    drivers = _of(parts, KernelDriver)
    named = [(part, part.kernel_version) for part in parts if part.kernel_version]
    versions = [(part, group.version) for part, group in drivers if group.version] + named
    for part, version in versions[1:]:
        if version != versions[0][1]:
            raise _OtherMachineError(versions[0][0], part, f"kernel module {versions[0][1]} and {version}")
    known = named[0][1] if named else None
    if drivers:
        found = next((group for _, group in drivers if group.version), drivers[0][1])
        return replace(found, version=found.version or known)
    return KernelDriver(loaded=True, version=known, nodes=None) if known else None


def _pci(listings: Sequence[tuple[Part, PciDevices]]) -> PciDevices:
    """The last listing, if all list the same GPUs; a paste may have a listing in several blocks."""
    first, devices = listings[0]
    if len({part.file for part, _ in listings}) == 1:
        return PciDevices(devices=tuple({one.bus_id: one for _, pci in listings for one in pci.devices}.values()))
    for part, other in listings[1:]:
        if {gpu.bus_id for gpu in other.gpus} != {gpu.bus_id for gpu in devices.gpus}:
            raise _OtherMachineError(first, part, "they list GPUs at different addresses")
    return listings[-1][1]


def _logs(logs: Sequence[KernelLog]) -> KernelLog:
    """One log. Events that are in several logs count once."""
    if len(logs) == 1:
        return logs[0]
    events: dict[tuple[str, str | None, float | None], KernelLogEvent] = {}
    for log in logs:
        for event in log.events:
            events.setdefault((event.text, event.time, event.boot_s), event)
    return KernelLog(
        source=", ".join(dict.fromkeys(log.source for log in logs)),
        lines=sum(log.lines for log in logs),
        unclassified=sum(event.times for event in events.values() if event.kind == "unclassified"),
        events=tuple(events.values()),
    )


def _without_switches(results: Sequence[Diagnostic], gpus: FactGroup | None) -> Iterator[Diagnostic]:
    """The results. A fabric manager that fails has nothing to manage next to GeForce GPUs, which have no NVSwitches."""
    names = [gpu.name or gpu.errors.get("name", "") for gpu in gpus.devices] if isinstance(gpus, Gpus) else []
    is_needless = any("GeForce" in name for name in names)
    for result in results:
        yield (
            replace(result, status="pass", message="nothing to manage next to GeForce GPUs")
            if is_needless and result.tool == "fabric manager"
            else result
        )


def _compare(
    found: Mapping[type[FactGroup], FactGroup], parts: Sequence[Part], pci: Sequence[tuple[Part, PciDevices]]
) -> None:
    """Refuse dumps where none of the driver's GPUs is among the PCI devices."""
    gpus = found.get(Gpus)
    if not pci or not isinstance(gpus, Gpus):
        return
    ours = {gpu.bus_id for gpu in gpus.devices if gpu.bus_id}
    listed = {gpu.bus_id for gpu in pci[-1][1].gpus}
    if ours and listed and not ours & listed:
        lister = next(part for part in parts if any(gpu.bus_id for gpu in part.gpus))
        raise _OtherMachineError(lister, pci[-1][0], "they have no GPU address in common")


_LOSSES = frozenset({"fallen-off-the-bus", "init-failed"})
_LOST_BY_XID = frozenset({79, 119, 120, 143, 154})
"""After these, the driver or the bus may no longer list the GPU."""


def _compare_logs(
    found: Mapping[type[FactGroup], FactGroup], parts: Sequence[Part], pci: Sequence[tuple[Part, PciDevices]]
) -> None:
    """Refuse a kernel log with Xids of a GPU that the machine does not have, unless the log says that it was lost."""
    gpus = found.get(Gpus)
    listed = {device.bus_id for _, group in pci for device in group.gpus}
    lister = pci[-1][0] if pci else None
    if isinstance(gpus, Gpus) and gpus.devices and all(gpu.bus_id for gpu in gpus.devices):
        if lister is None and gpus.count != len(gpus.devices):
            return
        listed |= {gpu.bus_id for gpu in gpus.devices if gpu.bus_id}
        lister = next((part for part in parts if any(gpu.bus_id for gpu in part.gpus)), lister)
    if lister is None or not listed:
        return
    for part, log in _of(parts, KernelLog):
        lost = {item.bus_id for item in log.events if item.kind in _LOSSES or item.code in _LOST_BY_XID}
        named = {item.bus_id for item in log.events if item.kind == "xid" and item.bus_id}
        if strangers := sorted(named - listed - lost):
            what = f"the log has an Xid of the GPU at {strangers[0]}, which is not in the first"
            raise _OtherMachineError(lister, part, what)
