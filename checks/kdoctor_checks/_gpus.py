"""Shared by checks of GPUs."""

from __future__ import annotations

import re
from functools import lru_cache

from kdoctor.facts import Gpu, GpuPair, Gpus, PciDevices, Unavailable
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Unjudged

MIB, GIB = 1024**2, 1024**3

RESET_NEEDED = Remedy(
    summary="Read the kernel log, then restart the machine. If the fault returns, have the hardware serviced.",
    action=Action.INSPECT_HARDWARE,
    commands=("sudo dmesg | grep -iE 'NVRM|Xid'", "nvidia-smi -L", "sudo reboot"),
)
RESTART = Rollback.nothing("not needed (a restart changes no configuration)")
NEW_CONTAINER = Rollback.nothing("not needed (a new container leaves the host unchanged)")
READ_ONLY = Rollback.nothing("not needed (this step is read-only)")

_ACRONYMS = {
    name.lower(): name for name in ("BAR1", "CPU", "ECC", "GPU", "MIG", "NVLinks", "PCIe", "SM", "SRAM", "UUID")
}


@lru_cache(maxsize=256)
def _plain(error: str) -> str:
    """One spelling for ``NVML_ERROR_GPU_IS_LOST``, ``GpuIsLost`` and ``GPU is lost``."""
    return "".join(letter for letter in error.lower() if letter.isalpha())


def lost(gpu: Gpu) -> str | None:
    """The NVML error "GPU is lost" or "reset required" (15 and 16), if one of the GPU's calls returned it."""
    for error in gpu.errors.values():
        if _plain(error).endswith(("gpuislost", "resetrequired")):
            return error
    return None


def hanging(gpu: Gpu) -> str | None:
    """The field whose call timed out, if one did."""
    return next((name for name, error in gpu.errors.items() if error.startswith("no answer within")), None)


def answering(gpus: Gpus) -> tuple[Gpu, ...]:
    """The GPUs that are not lost and do not hang. gpu.responding reports the others."""
    return tuple(gpu for gpu in gpus.devices if not lost(gpu) and not hanging(gpu))


def lost_addresses(gpus: Gpus, pci: PciDevices | Unavailable) -> frozenset[str]:
    """The addresses of lost GPUs, including those without address if as many GPUs on the bus are unaccounted for."""
    gone = [gpu for gpu in gpus.devices if lost(gpu)]
    found = {gpu.bus_id for gpu in gone if gpu.bus_id}
    nameless = len(gone) - len(found)
    if nameless and isinstance(pci, PciDevices):
        listed = {gpu.bus_id for gpu in gpus.devices}
        left = [device.bus_id for device in pci.gpus if device.bus_id not in listed and device.driver == "nvidia"]
        found |= set(left) if len(left) == nameless else set()
    return frozenset(found)


def unsupported(error: str | None) -> bool:
    """Whether NVML reports that the GPU does not support the reading, which nvidia-smi shows as ``N/A``."""
    return error is not None and (_plain(error).endswith("notsupported") or _plain(error) == "na")


def too_new(error: str | None) -> bool:
    """Whether the driver is too old for the reading: its library lacks the call or the field."""
    return error is not None and _plain(error).endswith(("functionnotfound", "invalidargument"))


def readings(gpus: Gpus, *fields: str, newer: bool = False) -> tuple[list[Gpu], list[Outcome]]:
    """The answering GPUs for which every field was read, and the outcomes for the others.

    A GPU that does not support a reading is not judged if no GPU of its model supports it, or if it is partitioned by
    MIG, which removes some readings. For any other missing reading, the GPU is ``Unjudged``.

    Args:
        gpus: the driver and its GPUs.
        fields: names of fields of ``Gpu``.
        newer: whether supported drivers may lack the call. If no GPU has the reading for this reason, the check is not
            applicable; ``gpu.readings`` reports that the driver is too old.
    """
    present = answering(gpus)
    judged = [gpu for gpu in present if not unread(gpu, *fields)]
    models = {gpu.name for gpu in judged}
    others: list[Outcome] = []
    excuses: set[str] = set()
    for gpu in present:
        problem = unread(gpu, *fields)
        if not problem:
            continue
        lacking = [name for name in fields if getattr(gpu, name) is None]
        errors = [gpu.errors.get(name) for name in lacking]
        missing = " and ".join(map(field_label, lacking))
        if all(map(unsupported, errors)) and (gpu.mig_mode or gpu.name not in models):
            excuses.add(f"{gpu.name or 'this GPU'} does not report {missing}")
        elif newer and not judged and all(too_new(error) or unsupported(error) for error in errors):
            excuses.add(f"driver {gpus.driver_version or '(unknown version)'} is too old to report {missing}")
        else:
            others.append(problem)
    if excuses and not judged and not others:
        others.append(NotApplicable(reason="; ".join(sorted(excuses))))
    return judged, others


def _why(gpu: Gpu, name: str) -> str:
    error = gpu.errors.get(name) or lost(gpu) or "no reason given"
    return f"the driver is too old: {error}" if too_new(error) else error


def field_label(name: str) -> str:
    """The name of a field of ``Gpu`` without underscores and unit, with acronyms in their usual spelling."""
    words = re.sub(r"_(bytes|c|mhz|percent|w)$", "", name).split("_")
    return " ".join(_ACRONYMS.get(word, word) for word in words)


def unread(gpu: Gpu, *fields: str) -> Unjudged | None:
    """The outcome for a GPU where one of the fields was not read; None if all were read."""
    lacking = [name for name in fields if getattr(gpu, name) is None]
    reasons = [f"{field_label(name)} not read ({_why(gpu, name)})" for name in lacking]
    return Unjudged(subject=gpu.subject, reason=", ".join(reasons)) if reasons else None


def nvlinks(pair: GpuPair) -> int | None:
    """Active NVLinks between two GPUs; 0 without NVLink support, None if not read."""
    return 0 if pair.nvlinks is None and unsupported(pair.errors.get("nvlinks")) else pair.nvlinks


def virtual(gpus: Gpus) -> str | None:
    """The GPUs' virtualization mode as NVML names it; None on bare metal, or if not reported."""
    modes = sorted({gpu.virtualization_mode or "none" for gpu in gpus.devices} - {"none"})
    return ", ".join(modes) or None


def size(value: int) -> str:
    """Bytes in the unit of nvidia-smi and df: MiB below 10 GiB, GiB from there on."""
    return f"{value / MIB:.0f} MiB" if value < 10 * GIB else f"{value / GIB:.1f} GiB"


def smi(gpu: Gpu, *options: str) -> str:
    """An nvidia-smi command for this GPU."""
    return " ".join(("nvidia-smi", "-i", gpu.bus_id or str(gpu.index), *options))


def judge(
    subject: str, observed: str, *, ok: bool, expected: str, remedy: Remedy, rollback: Rollback = READ_ONLY
) -> Evidence | Finding:
    """Evidence if the subject is ok, or a finding with the same observation."""
    if ok:
        return Evidence(subject=subject, observed=observed)
    return Finding(subject=subject, observed=observed, expected=expected, remedy=remedy, rollback=rollback)


def inspect(summary: str, *commands: str) -> Remedy:
    """A remedy that inspects hardware."""
    return Remedy(summary=summary, action=Action.INSPECT_HARDWARE, commands=commands)


def configure(summary: str, *commands: str) -> Remedy:
    """A remedy that changes a setting."""
    return Remedy(summary=summary, action=Action.CONFIGURE, commands=commands)


def field_diagnostic(gpu: Gpu, section: str) -> Remedy:
    """Replace a GPU with worn-out memory, after reading this section of ``nvidia-smi -q``."""
    summary = "Stop using the GPU and test it with NVIDIA's field diagnostic."
    return inspect(summary, smi(gpu, f"-q -d {section}"))


def reset(gpu: Gpu, *, read_log: bool = False) -> Remedy:
    """Reset one GPU."""
    look = ("sudo dmesg | grep -iE 'NVRM|Xid'",) if read_log else ()
    return Remedy(
        summary="Stop all processes on the GPU, then reset it.",
        action=Action.REBOOT,
        commands=(*look, f"sudo nvidia-smi --gpu-reset -i {gpu.bus_id or gpu.index}"),
    )
