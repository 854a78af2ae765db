"""Joins what several dumps say of one machine, and tells where they cannot be of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from kdoctor.errors import UsageError
from kdoctor.facts import FactGroup, Gpu, GpuPair, Gpus, KernelDriver, KernelLog, KernelLogEvent, PciDevices
from kdoctor.snapshot.imports.part import CUT, GpuPart, Kind, PairPart, Part

_KIND_ORDER: tuple[Kind, ...] = (
    "nvidia-smi -q -x",
    "nvidia-smi -q",
    "nvidia-smi",
    "nvidia-smi nvlink -s",
    "nvidia-smi -L",
    "nvidia-smi topo -m",
    "nvidia-smi topo -p2p",
    "lstopo",
    "nvidia-smi's failure",
)
"""Dumps of GPUs, those that tell the most of which GPU is which first."""
_READINGS = ("nvidia-smi -q -x", "nvidia-smi -q")
_FIXED = ("name", "minor_number", "memory_total_bytes", "architecture")
"""Fields of a GPU that never change: dumps that differ in them are of two machines."""
_GPU_FIELDS = tuple(field.name for field in fields(Gpu) if field.name not in {"index", "errors"})
_PAIR_FIELDS = ("nvlinks", "p2p_read", "p2p_write", "p2p_nvlink")
_DRIVER_FIELDS = ("driver_version", "cuda_driver_version", "count", "nvml_version", "conf_compute")


@dataclass(kw_only=True)
class _Device:
    """One GPU, and every dump that speaks of it."""

    parts: list[tuple[Part, GpuPart]] = field(default_factory=list)

    def get(self, key: str) -> tuple[Part, Any] | None:
        """What the dumps say of an identity, and which one says so."""
        return next(((part, getattr(gpu, key)) for part, gpu in self.parts if _identity(gpu, key) is not None), None)


def join(parts: Sequence[Part]) -> tuple[dict[type[FactGroup], FactGroup], tuple[str, ...]]:
    """The groups of facts that the dumps give together, and notes for the user.

    Raises:
        UsageError: the dumps cannot be of one machine.
    """
    found: dict[type[FactGroup], FactGroup] = {}
    notes = [note for part in parts for note in part.notes]
    of_gpus = [part for part in parts if part.kind in _KIND_ORDER and (part.gpus or part.kind != "lstopo")]
    if of_gpus:
        gpus, more = _gpus(of_gpus)
        found[Gpus] = gpus
        notes += more
    driver = _kernel_driver(parts)
    if driver:
        found[KernelDriver] = driver
    pci = [(part, group) for part in parts for group in part.groups if isinstance(group, PciDevices)]
    if pci:
        found[PciDevices] = _pci(pci)
    logs = [group for part in parts for group in part.groups if isinstance(group, KernelLog)]
    if logs:
        found[KernelLog] = _logs(logs)
    _compare(found, of_gpus, pci)
    return found, tuple(notes)


def _not_one_machine(first: Part, second: Part, what: str) -> UsageError:
    where = f"{first.file} ({first.kind}) and {second.file} ({second.kind})"
    return UsageError(f"{where} are not of one machine, or not of one time: {what}", hint="Import them apart.")


# --- the driver ------------------------------------------------------------------------------------------------


def _gpus(parts: Sequence[Part]) -> tuple[Gpus, list[str]]:
    notes: list[str] = []
    facts, errors = _driver(parts)
    devices = _index(_devices(parts), notes)
    count = facts.get("count")
    if isinstance(count, int) and count > len(devices) and facts.get("state", "ready") == "ready":
        cut = any(gpu.cut for part in parts for gpu in part.gpus)
        why = "the file ends before the others" if cut else "the others are not in it"
        errors["devices"] = f"{count} GPUs are attached, and {len(devices)} told of: {why}"
        notes.append(f"{', '.join(_files(parts))}: {errors['devices']}")
    said = _said(parts)
    errors |= {name: said for name in _DRIVER_FIELDS if name not in facts and name not in errors}
    built = tuple(_gpu(index, device, said) for index, device in devices.items())
    pairs = tuple(_pairs(parts, sorted(devices)))
    return Gpus(**{"state": "ready", **facts}, devices=built, pairs=pairs, errors=errors), notes


def _files(parts: Sequence[Part]) -> list[str]:
    return list(dict.fromkeys(part.file for part in parts))


def _said(parts: Sequence[Part]) -> str:
    """The reason of what no dump says."""
    kinds = dict.fromkeys(part.kind for part in sorted(parts, key=lambda part: _KIND_ORDER.index(part.kind)))
    return f"not in {', '.join(kinds)}"


def _driver(parts: Sequence[Part]) -> tuple[dict[str, Any], dict[str, str]]:
    """What the dumps say of the driver: of versions they must say the same, of the count the last one counts."""
    facts: dict[str, Any] = {}
    errors: dict[str, str] = {}
    told: dict[str, Part] = {}
    for part in parts:
        errors |= {name: text for name, text in part.driver_errors.items() if name not in facts}
        for name, value in part.driver.items():
            if name in {"driver_version", "cuda_driver_version"} and facts.get(name, value) != value:
                raise _not_one_machine(told[name], part, f"{name.replace('_', ' ')} {facts[name]} and {value}")
            if name == "count" and name in facts and part.kind not in _READINGS:
                if value > facts[name]:
                    raise _not_one_machine(told[name], part, f"{facts[name]} GPUs and {value}")
                continue
            facts[name], told[name] = value, part
            errors.pop(name, None)
    if facts.get("state", "ready") != "ready" and any(part.gpus for part in parts):
        failed = told["state"]
        other = next(part for part in parts if part.gpus)
        raise _not_one_machine(failed, other, "in the one nvidia-smi fails, in the other it answers")
    return facts, errors


# --- its GPUs --------------------------------------------------------------------------------------------------


def _devices(parts: Sequence[Part]) -> list[_Device]:
    """The GPUs that the dumps name, each once."""
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
    # Captures that hide serial numbers write zeros.
    return None if key == "uuid" and value and not value.removeprefix("GPU-").strip("0-") else value


def _is_same(device: _Device, part: Part, gpu: GpuPart) -> bool:
    """Whether the dump speaks of this GPU.

    Raises:
        UsageError: one identity is the same, and another is not.
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
        what = f"GPU {getattr(gpu, same[0])} has {key} {value} in the one and {getattr(gpu, key)} in the other"
        raise _not_one_machine(other_part, part, what)
    return bool(same)


def _index(devices: Sequence[_Device], notes: list[str]) -> dict[int, _Device]:
    """The GPUs by index. Where no dump tells it, the place in the file stands for it, with a note."""
    told = {index[1]: device for device in devices if (index := device.get("index"))}
    nameless = next((device for device in told.values() if not device.get("uuid") and not device.get("bus_id")), None)
    unplaced = next((device for device in devices if device.get("index") is None), None)
    if nameless and unplaced:
        first, second = nameless.parts[0][0], unplaced.parts[0][0]
        raise UsageError(
            f"{second.file} ({second.kind}) lists only some of the GPUs: which of those in {first.file} ({first.kind}) "
            "they are is not told",
            hint="Give a dump of all GPUs, or the output of nvidia-smi -L too.",
        )
    free = (index for index in range(len(devices) + len(told)) if index not in told)
    for device in devices:
        if device.get("index") is None:
            place = next(free)
            told[place] = device
            notes.append(f"{device.parts[0][0].file}: the index of a GPU is not told; it is called GPU {place} here")
    return dict(sorted(told.items()))


def _gpu(index: int, device: _Device, said: str) -> Gpu:
    facts: dict[str, Any] = {}
    errors: dict[str, str] = {}
    told: dict[str, Part] = {}
    for part, gpu in _latest_last(device.parts):
        for name, value in {**gpu.facts, "bus_id": gpu.bus_id, "uuid": gpu.uuid}.items():
            if value is None:
                continue
            if name in _FIXED and facts.get(name, value) != value:
                what = f"GPU {index} has {name.replace('_', ' ')} {facts[name]} in the one and {value} in the other"
                raise _not_one_machine(told[name], part, what)
            facts[name], told[name] = value, part
            errors.pop(name, None)
        errors |= {name: text for name, text in gpu.errors.items() if name not in facts or name == "nvlinks"}
    facts |= _masks(device)
    cut = all(gpu.cut for part, gpu in device.parts if part.kind in _READINGS)
    missing = CUT if cut and any(part.kind in _READINGS for part, _ in device.parts) else said
    errors |= {name: missing for name in _GPU_FIELDS if facts.get(name) is None and name not in errors}
    return Gpu(index=index, **facts, errors=errors)


def _latest_last(parts: Sequence[tuple[Part, GpuPart]]) -> Iterator[tuple[Part, GpuPart]]:
    """In the order in which they count: the most detailed kind last, and of one kind the last that was given."""
    yield from sorted(parts, key=lambda item: -_KIND_ORDER.index(item[0].kind))


def _masks(device: _Device) -> dict[str, Any]:
    """The clocks' event reasons of all readings, in order."""
    masks = tuple(
        mask
        for part, gpu in device.parts
        if part.kind in _READINGS
        for mask in gpu.facts.get("clock_event_reasons", ())
    )
    return {"clock_event_reasons": masks} if masks else {}


# --- pairs -----------------------------------------------------------------------------------------------------


def _pairs(parts: Sequence[Part], indices: Sequence[int]) -> Iterator[GpuPair]:
    """Each pair of the GPUs that are told of; what no dump says of it is an error with that reason."""
    said = _said(parts)
    told: dict[tuple[int, int], list[PairPart]] = {}
    for part in parts:
        for key, pair in part.pairs.items():
            told.setdefault(key, []).append(pair)
    for place, first in enumerate(indices):
        for second in indices[place + 1 :]:
            facts: dict[str, Any] = {}
            errors: dict[str, str] = {}
            for pair in told.get((first, second), ()):
                facts |= pair.facts
                errors |= pair.errors
            level_error = errors.pop("level", said)
            errors |= {name: said for name in _PAIR_FIELDS if name not in facts and name not in errors}
            yield GpuPair(
                **{"level": None, **facts},
                first=first,
                second=second,
                error=None if facts.get("level") else level_error,
                errors={name: text for name, text in errors.items() if name not in facts},
            )


# --- the other groups ------------------------------------------------------------------------------------------


def _kernel_driver(parts: Sequence[Part]) -> KernelDriver | None:
    """The module, by its own file before what nvidia-smi says of it (driver 610 and later)."""
    told = [(part, group) for part in parts for group in part.groups if isinstance(group, KernelDriver)]
    named = [(part, part.kernel_version) for part in parts if part.kernel_version]
    versions = [(part, group.version) for part, group in told if group.version] + named
    for part, version in versions[1:]:
        if version != versions[0][1]:
            raise _not_one_machine(versions[0][0], part, f"kernel module {versions[0][1]} and {version}")
    if told:
        return next((group for _, group in told if group.version), told[0][1])
    return KernelDriver(loaded=True, version=named[0][1], nodes=None) if named else None


def _pci(told: Sequence[tuple[Part, PciDevices]]) -> PciDevices:
    """One listing; of several the last (lspci's before hwloc's), if they list the same GPUs."""
    told = sorted(told, key=lambda item: item[0].kind == "lspci -vvv")
    first, devices = told[0]
    for part, other in told[1:]:
        if {gpu.bus_id for gpu in other.gpus} != {gpu.bus_id for gpu in devices.gpus}:
            raise _not_one_machine(first, part, "they list GPUs at different addresses")
    return told[-1][1]


def _logs(logs: Sequence[KernelLog]) -> KernelLog:
    """One log; of several all events, those that stand in two of them once."""
    if len(logs) == 1:
        return logs[0]
    events: dict[tuple[str, str | None, float | None], KernelLogEvent] = {}
    for log in logs:
        for event in log.events:
            events.setdefault((event.text, event.time, event.boot_s), event)
    return KernelLog(
        source=", ".join(dict.fromkeys(log.source for log in logs)),
        lines=sum(log.lines for log in logs),
        events=tuple(events.values()),
    )


def _compare(
    found: Mapping[type[FactGroup], FactGroup], parts: Sequence[Part], pci: Sequence[tuple[Part, PciDevices]]
) -> None:
    """Whether the driver's GPUs are among the machine's PCI devices."""
    gpus = found.get(Gpus)
    if not pci or not isinstance(gpus, Gpus):
        return
    ours = {gpu.bus_id for gpu in gpus.devices if gpu.bus_id}
    listed = {gpu.bus_id for gpu in pci[-1][1].gpus}
    if ours and listed and not ours & listed:
        speaker = next(part for part in parts if any(gpu.bus_id for gpu in part.gpus))
        raise _not_one_machine(speaker, pci[-1][0], "no GPU of the one is at an address that the other lists")
