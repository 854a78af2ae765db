"""Helpers for checks of GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from kdoctor.facts import Gpu, GpuPair, Gpus, PciDevices, Unavailable
from kdoctor.model import Action, NotApplicable, Outcome, Remedy, Rollback, Unjudged

MIB, GIB = 1024**2, 1024**3

RESET_NEEDED = Remedy(
    summary="Read the kernel's messages about the GPU, then restart the machine. If the GPU is lost again, have the "
    "hardware inspected.",
    action=Action.INSPECT_HARDWARE,
    commands=("sudo dmesg | grep -iE 'NVRM|Xid'", "nvidia-smi -L", "sudo reboot"),
)
READ_ONLY = LOOKING = Rollback.nothing("not needed (this step is read-only)")
RESTART = NOTHING_CHANGED = Rollback.nothing("not needed (a restart changes no configuration)")
NEW_CONTAINER = Rollback.nothing("not needed (a new container leaves the host unchanged)")


@lru_cache(maxsize=256)
def _plain(error: str) -> str:
    """The letters of an NVML error: ``NVML_ERROR_GPU_IS_LOST``, ``GpuIsLost`` and ``GPU is lost`` end alike."""
    return "".join(letter for letter in error.lower() if letter.isalpha())


def lost(gpu: Gpu) -> str | None:
    """The NVML error that reports the GPU as lost (15) or in need of a reset (16), if a call returned one."""
    errors = (error for error in gpu.errors.values() if _plain(error).endswith(("gpuislost", "resetrequired")))
    return next(errors, None)


def hanging(gpu: Gpu) -> str | None:
    """The field whose call did not return before the probe's deadline, if there is one."""
    return next((name for name, error in gpu.errors.items() if error.startswith("no answer within")), None)


def answering(gpus: Gpus) -> tuple[Gpu, ...]:
    """The GPUs that are not lost and do not hang. gpu.responding reports the others."""
    return tuple(gpu for gpu in gpus.devices if not lost(gpu) and not hanging(gpu))


def lost_addresses(gpus: Gpus, pci: PciDevices | Unavailable) -> frozenset[str]:
    """The addresses of lost GPUs. A GPU without an address gets one if exactly that many are left on the bus."""
    gone = [gpu for gpu in gpus.devices if lost(gpu)]
    found = {gpu.bus_id for gpu in gone if gpu.bus_id}
    nameless = len(gone) - len(found)
    if nameless and isinstance(pci, PciDevices):
        listed = {gpu.bus_id for gpu in gpus.devices}
        left = [device.bus_id for device in pci.gpus if device.bus_id not in listed and device.driver == "nvidia"]
        found |= set(left) if len(left) == nameless else set()
    return frozenset(found)


def unsupported(error: str | None) -> bool:
    """Whether NVML reports that this GPU does not support a reading; nvidia-smi shows ``N/A``."""
    return error is not None and (_plain(error).endswith("notsupported") or _plain(error) == "na")


def too_new(error: str | None) -> bool:
    """Whether the driver is too old for a reading: its library lacks the call, or the id of the field."""
    return error is not None and _plain(error).endswith(("functionnotfound", "invalidargument"))


def readings(gpus: Gpus, *fields: str, newer: bool = False) -> tuple[list[Gpu], list[Outcome]]:
    """The answering GPUs with all of these readings, and the outcomes for the others.

    A GPU that does not support a reading is not a subject, if no other GPU of its model supports it, or if the GPU is
    in MIG mode, which removes some readings. Any other missing reading leaves the GPU unjudged.

    Args:
        gpus: the driver and its GPUs.
        fields: names of fields of ``Gpu``.
        newer: whether supported drivers may lack the call. The check does not apply if no GPU has the reading for
            that reason; ``gpu.readings`` reports that the driver is too old.
    """
    present = answering(gpus)
    lacking = {gpu.index: [name for name in fields if getattr(gpu, name) is None] for gpu in present}
    judged = [gpu for gpu in present if not lacking[gpu.index]]
    models = {gpu.name for gpu in judged}
    others: list[Outcome] = []
    excuses: set[str] = set()
    for gpu in present:
        errors = [gpu.errors.get(name) for name in lacking[gpu.index]]
        if not errors:
            continue
        if all(map(unsupported, errors)) and (gpu.mig_mode or gpu.name not in models):
            excuses.add(f"{gpu.name or 'this GPU'} does not support it")
        elif newer and not judged and all(too_new(error) or unsupported(error) for error in errors):
            excuses.add(f"driver {gpus.driver_version or 'of unknown version'} is too old for this reading")
        else:
            others += _unread(gpu, lacking[gpu.index])
    if excuses and not judged and not others:
        others.append(NotApplicable(reason="; ".join(sorted(excuses))))
    return judged, others


def _unread(gpu: Gpu, fields: Iterable[str]) -> list[Unjudged]:
    reasons = [f"{name.replace('_', ' ')} not read ({_why(gpu, name)})" for name in fields]
    return [Unjudged(subject=gpu.subject, reason=", ".join(reasons))] if reasons else []


def _why(gpu: Gpu, name: str) -> str:
    error = gpu.errors.get(name) or lost(gpu) or "no reason given"
    return f"the driver is too old: {error}" if too_new(error) else error


def unread(gpu: Gpu, *fields: str) -> Unjudged | None:
    """The outcome for a GPU with unread fields; None if all were read."""
    found = _unread(gpu, [name for name in fields if getattr(gpu, name) is None])
    return found[0] if found else None


def nvlinks(pair: GpuPair) -> int | None:
    """Active NVLinks between two GPUs; 0 if one does not support NVLink, None if they were not read."""
    return 0 if pair.nvlinks is None and unsupported(pair.errors.get("nvlinks")) else pair.nvlinks


def virtual(gpus: Gpus) -> str | None:
    """NVML's virtualization modes of the GPUs; None on bare metal, or if they are unknown."""
    modes = sorted({gpu.virtualization_mode or "none" for gpu in gpus.devices} - {"none"})
    return ", ".join(modes) or None


def size(value: int) -> str:
    """Bytes as MiB below 10 GiB, and as GiB from there on."""
    return f"{value / MIB:.0f} MiB" if value < 10 * GIB else f"{value / GIB:.1f} GiB"


def smi(gpu: Gpu, *options: str) -> str:
    """An nvidia-smi command for this GPU."""
    return " ".join(("nvidia-smi", "-i", gpu.bus_id or str(gpu.index), *options))
