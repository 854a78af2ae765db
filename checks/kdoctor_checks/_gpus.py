"""What checks of GPUs have in common."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from kdoctor.facts import Gpu, GpuPair, Gpus, PciDevices, Unavailable
from kdoctor.model import Action, NotApplicable, Outcome, Remedy, Rollback, Unjudged

MIB, GIB = 1024**2, 1024**3

RESET_NEEDED = Remedy(
    summary="Read what the kernel logged about the GPU, then restart the machine; a GPU that is lost again needs a "
    "technician.",
    action=Action.INSPECT_HARDWARE,
    commands=("sudo dmesg | grep -iE 'NVRM|Xid'", "nvidia-smi -L", "sudo reboot"),
)
NOTHING_CHANGED = Rollback.nothing("a restart changes no configuration")
LOOKING = Rollback.nothing("looking changes nothing")


@lru_cache(maxsize=256)
def _plain(error: str) -> str:
    """``NVML_ERROR_GPU_IS_LOST``, ``GpuIsLost`` and ``GPU is lost`` are one error."""
    return "".join(letter for letter in error.lower() if letter.isalpha())


def lost(gpu: Gpu) -> str | None:
    """The NVML error that says that the GPU is lost or must be reset, if one of its calls returned it.

    Those two errors (15 and 16) condemn this GPU alone.
    """
    for error in gpu.errors.values():
        if _plain(error).endswith(("gpuislost", "resetrequired")):
            return error
    return None


def hanging(gpu: Gpu) -> str | None:
    """The field whose call did not return within the probe's patience, if one did not."""
    return next((name for name, error in gpu.errors.items() if error.startswith("no answer within")), None)


def answering(gpus: Gpus) -> tuple[Gpu, ...]:
    """The GPUs that are not lost and do not hang; gpu.responding tells of the others."""
    return tuple(gpu for gpu in gpus.devices if not lost(gpu) and not hanging(gpu))


def lost_addresses(gpus: Gpus, pci: PciDevices | Unavailable) -> frozenset[str]:
    """The addresses of lost GPUs; of one that tells none, where exactly one on the bus is left for each such."""
    gone = [gpu for gpu in gpus.devices if lost(gpu)]
    found = {gpu.bus_id for gpu in gone if gpu.bus_id}
    nameless = len(gone) - len(found)
    if nameless and isinstance(pci, PciDevices):
        listed = {gpu.bus_id for gpu in gpus.devices}
        left = [device.bus_id for device in pci.gpus if device.bus_id not in listed and device.driver == "nvidia"]
        found |= set(left) if len(left) == nameless else set()
    return frozenset(found)


def unsupported(error: str | None) -> bool:
    """Whether NVML says that this GPU has no such thing; nvidia-smi shows that as ``N/A``."""
    return error is not None and (_plain(error).endswith("notsupported") or _plain(error) == "na")


def too_new(error: str | None) -> bool:
    """Whether the driver does not know what was asked for: its library lacks the call, or the field's id."""
    return error is not None and _plain(error).endswith(("functionnotfound", "invalidargument"))


def readings(gpus: Gpus, *fields: str, newer: bool = False) -> tuple[list[Gpu], list[Outcome]]:
    """The answering GPUs of which every field was read, and what is to be said of the others.

    A GPU that does not support what is asked for is no subject, provided that no other of its model does (or that it
    is split by MIG, which takes some readings away). Any other missing reading leaves the GPU unjudged.

    Args:
        gpus: the driver and its GPUs.
        fields: names of fields of ``Gpu``.
        newer: whether supported drivers lack the call legitimately. Then there is no subject where none of the GPUs
            has the reading for that reason; ``gpu.readings`` tells that the driver is too old to say.
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
            excuses.add(f"driver {gpus.driver_version or 'of unknown version'} is too old to say")
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
    return f"the driver is too old to say: {error}" if too_new(error) else error


def unread(gpu: Gpu, *fields: str) -> Unjudged | None:
    """That this GPU cannot be judged, where one of the fields was not read; None where all were."""
    found = _unread(gpu, [name for name in fields if getattr(gpu, name) is None])
    return found[0] if found else None


def nvlinks(pair: GpuPair) -> int | None:
    """Active NVLinks between two GPUs; 0 where one has no NVLink at all, None where it was not read."""
    return 0 if pair.nvlinks is None and unsupported(pair.errors.get("nvlinks")) else pair.nvlinks


def virtual(gpus: Gpus) -> str | None:
    """How the GPUs are given to this virtual machine, in NVML's words; None on bare metal, or where it is not told."""
    modes = sorted({gpu.virtualization_mode or "none" for gpu in gpus.devices} - {"none"})
    return ", ".join(modes) or None


def size(value: int) -> str:
    """Bytes in the unit that nvidia-smi and df use: MiB below 10 GiB, else GiB."""
    return f"{value / MIB:.0f} MiB" if value < 10 * GIB else f"{value / GIB:.1f} GiB"


def smi(gpu: Gpu, *options: str) -> str:
    """A command of nvidia-smi for this GPU alone."""
    return " ".join(("nvidia-smi", "-i", gpu.bus_id or str(gpu.index), *options))
