"""Shared by checks of GPUs."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from kdoctor.commands.shell import quoted, set_variable
from kdoctor.facts import Gpu, GpuPair, Gpus, PciDevices, Unavailable
from kdoctor.facts.visible import ORDER_VARIABLE, VARIABLE
from kdoctor.model import READ_ONLY, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Unjudged
from kdoctor.text.lists import counted

MIB, GIB = 1024**2, 1024**3

DRIVER_MESSAGES = "sudo dmesg | grep -iE 'NVRM|Xid'"
RESET_NEEDED = Remedy.reboot(
    "Restart the machine. If the fault returns, have the hardware serviced.",
    "sudo reboot",
    look=(DRIVER_MESSAGES, "nvidia-smi -L"),
)
RELOAD_MODULE = Remedy.reboot(
    "Restart, or reload the modules. In a container or vGPU guest, the module is the host's: restart it, or use an "
    "image or guest driver of its version.",
    "sudo reboot",
    look=("cat /proc/driver/nvidia/version", "nvidia-smi"),
)
RESTART = Rollback.nothing("not needed (a restart changes no configuration)")
NEW_CONTAINER = Rollback.nothing("not needed (a new container leaves the host unchanged)")
OF_ONE_SHELL = Rollback.nothing("not needed (export affects one shell only)")
RESEAT = "Read the kernel log for the port, then reseat the card or replace its riser; service an SXM board."
DRIVER = ("driver.library-matches-module",)
"""What checks of GPUs require."""
RESPONDING = "gpu.responding"
"""The check that reports lost and hanging GPUs."""

_ACRONYMS = {
    name.lower(): name for name in ("BAR1", "CPU", "ECC", "GPU", "MIG", "NVLinks", "PCIe", "SM", "SRAM", "TPC", "UUID")
}
_LONGEST_MODELS = 60
_GONE = ("gpuislost", "resetrequired", "requiresreset")
_NO_STATE = ("err", "unknownerror", "nvmlerrorunknown")
_SENSORS = ("temperature_c", "power_draw_w")
_NO_PERMISSION = ("nopermission", "insufficientpermissions", "operatingsystem")
"""What NVML and nvidia-smi report for a GPU that a control group or the file mode of its node withholds."""


@lru_cache(maxsize=256)
def letters(error: str) -> str:
    """One spelling for ``NVML_ERROR_GPU_IS_LOST``, ``GpuIsLost`` and ``GPU is lost``."""
    return "".join(letter for letter in error.lower() if letter.isalpha())


def lost(gpu: Gpu) -> str | None:
    """Why the GPU cannot be used; None if it can.

    One of its calls returned the NVML error "GPU is lost" or "reset required" (15 and 16), or the driver could not open
    it. nvidia-smi shows an error in place of the performance state or the UUID of a GPU that does not respond, or of
    both its temperature and its power draw. A missing permission does not count.
    """
    if all(letters(gpu.errors.get(name, "")) in _NO_STATE for name in _SENSORS):
        return gpu.errors[_SENSORS[0]]
    for name, error in gpu.errors.items():
        plain = letters(error)
        is_always_read = name == "performance_state" or (name == "uuid" and gpu.performance_state is None)
        if plain.endswith(_GONE) or (is_always_read and plain in _NO_STATE):
            return error
    opening = gpu.errors.get("handle")
    if opening and (opening.startswith("no answer within") or letters(opening).endswith(_NO_PERMISSION)):
        return None
    return opening


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


def silent(gpus: Gpus) -> tuple[Gpu, ...]:
    """The GPUs that are lost or hang."""
    return tuple(gpu for gpu in gpus.devices if lost(gpu) or hanging(gpu))


def not_answering(gpus: Gpus) -> list[Unjudged]:
    """The outcome of a check for each GPU that is lost or hangs."""
    return [
        Unjudged(subject=gpu.subject, reason="does not respond", explained_by=(RESPONDING,)) for gpu in silent(gpus)
    ]


def only_lost(others: Sequence[Outcome]) -> bool:
    """Whether these outcomes of ``readings`` are about lost and hanging GPUs only."""
    return all(isinstance(item, Unjudged) and item.explained_by == (RESPONDING,) for item in others)


def located(gpus: Gpus, pci: PciDevices | Unavailable) -> tuple[Gpu, ...]:
    """The GPUs. Lost GPUs without address get those on the PCI bus, if as many are left.

    NVML counts the GPUs in the order of their addresses. Of several addresses, each GPU gets the one in this order.
    """
    nameless = [gpu for gpu in gpus.devices if lost(gpu) and not gpu.bus_id]
    left = sorted(lost_addresses(gpus, pci) - {gpu.bus_id for gpu in gpus.devices})
    if len(nameless) != len(left):
        return gpus.devices
    by_index = {gpu.index: address for gpu, address in zip(nameless, left, strict=True)}
    placed = tuple(replace(gpu, bus_id=by_index.get(gpu.index, gpu.bus_id)) for gpu in gpus.devices)
    addresses = [gpu.bus_id or "" for gpu in sorted(placed, key=lambda gpu: gpu.index)]
    return placed if len(left) == 1 or addresses == sorted(addresses) else gpus.devices


def subjects(gpus: Gpus | Unavailable, pci: PciDevices | Unavailable) -> dict[str, str]:
    """The name of each GPU in reports, by address."""
    found = located(gpus, pci) if isinstance(gpus, Gpus) else ()
    return {gpu.bus_id: gpu.subject for gpu in found if gpu.bus_id}


def absent(gpus: Gpus | Unavailable, pci: PciDevices | Unavailable) -> NotApplicable | None:
    """Why nothing can be said about GPUs: the driver lists none, or no source knows one.

    With a kernel log alone, neither the driver nor the bus was read, and the log is judged.
    """
    listed = isinstance(gpus, Gpus) and bool(gpus.devices or gpus.count)
    if listed or (isinstance(gpus, Unavailable) and (isinstance(pci, Unavailable) or pci.gpus)):
        return None
    if isinstance(pci, Unavailable) or pci.gpus:
        return NotApplicable(reason="the driver lists no GPU")
    unlisted = " and none listed by the driver" if isinstance(gpus, Gpus) else ""
    return NotApplicable(reason=f"no NVIDIA GPU on the PCI bus{unlisted}")


def unsupported(error: str | None) -> bool:
    """Whether NVML reports that the GPU does not support the reading, which nvidia-smi shows as ``N/A``."""
    return error is not None and (letters(error).endswith("notsupported") or letters(error) == "na")


def too_new(error: str | None) -> bool:
    """Whether the driver is too old for the reading: its library lacks the call or the field."""
    endings = ("functionnotfound", "invalidargument", "notreportedbythisdriver")
    return error is not None and letters(error).endswith(endings)


def readings(
    gpus: Gpus, *fields: str, newer: bool = False, owed: Callable[[Gpu], bool] = lambda _: False
) -> tuple[list[Gpu], list[Outcome]]:
    """The answering GPUs for which every field was read, and the outcomes for the others.

    A GPU that does not support a reading is not judged if no GPU of its model supports it, or if it is partitioned by
    MIG, which removes some readings. For any other missing reading, the GPU is ``Unjudged``.

    Args:
        gpus: the driver and its GPUs.
        fields: names of fields of ``Gpu``.
        newer: whether supported drivers may lack the call. If no GPU has the reading for this reason, the check is not
            applicable; ``gpu.readings`` reports that the driver is too old.
        owed: whether something else that was read shows that the GPU has it.
    """
    present = answering(gpus)
    judged = [gpu for gpu in present if not unread(gpu, *fields)]
    models = {gpu.name for gpu in judged}
    others: list[Outcome] = [*not_answering(gpus)]
    gone = len(others)
    excuses: set[str] = set()
    for gpu in present:
        problem = unread(gpu, *fields)
        if not problem:
            continue
        lacking = [name for name in fields if getattr(gpu, name) is None]
        errors = [gpu.errors.get(name) for name in lacking]
        missing = " and ".join(map(field_label, lacking))
        known = gpu.name in models or owed(gpu) or any(map(gpu.owes, lacking))
        if all(map(unsupported, errors)) and (gpu.mig_mode or not known):
            whose = "while MIG is on" if gpu.mig_mode else f"for {gpu.name or 'this GPU'}"
            excuses.add(f"{missing} not reported here {whose}")
        elif newer and not judged and all(too_new(error) or unsupported(error) for error in errors):
            excuses.add(f"driver {gpus.driver_version or '(unknown version)'} is too old to report {missing}")
        else:
            others.append(problem)
    if excuses and not judged and len(others) == gone:
        return [], [NotApplicable(reason="; ".join(sorted(excuses)))]
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
    because = (RESPONDING,) if lost(gpu) or hanging(gpu) else ()
    return Unjudged(subject=gpu.subject, reason=", ".join(reasons), explained_by=because) if reasons else None


def nvlinks(pair: GpuPair) -> int | None:
    """Active NVLinks between two GPUs; 0 without NVLink support, None if not read."""
    return 0 if pair.nvlinks is None and unsupported(pair.errors.get("nvlinks")) else pair.nvlinks


def inactive_links(gpu: Gpu) -> bool:
    """Whether an NVLink of the GPU is inactive."""
    return any(link.active is False for link in gpu.nvlinks or ())


def virtual(gpus: Gpus) -> str | None:
    """The GPUs' virtualization mode as NVML names it; None on bare metal, or if not reported."""
    modes = sorted({gpu.virtualization_mode or "none" for gpu in gpus.devices} - {"none"})
    return ", ".join(modes) or None


def size(value: int) -> str:
    """Bytes in the unit of nvidia-smi and df: MiB below 10 GiB, GiB from there on."""
    return f"{value / MIB:.0f} MiB" if value < 10 * GIB else f"{value / GIB:.1f} GiB"


def span(values: Sequence[float], unit: str) -> str:
    """The range of values: ``84 to 90 MHz``, or ``84 MHz`` if all are equal."""
    low, high = min(values), max(values)
    return f"{low:g} {unit}" if low == high else f"{low:g} to {high:g} {unit}"


def smi(selected: Gpu | Sequence[Gpu], *options: str, among: Gpus | None = None) -> str:
    """An nvidia-smi command for these GPUs.

    Args:
        selected: one GPU or several.
        options: the rest of the command.
        among: all GPUs; if they are the selected ones, the command names none, nor if nothing names one of them.
    """
    chosen = (selected,) if isinstance(selected, Gpu) else tuple(selected)
    if (among is not None and len(chosen) == among.count) or not all(gpu.selector for gpu in chosen):
        return " ".join(("nvidia-smi", *options))
    return " ".join(("nvidia-smi", "-i", quoted(",".join(gpu.selector for gpu in chosen)), *options))


def models(gpus: Sequence[Gpu]) -> str:
    """The number of GPUs of each model: ``8 x NVIDIA H100 80GB HBM3``."""
    counts = Counter(gpu.name for gpu in gpus)
    if None in counts:
        return counted(len(gpus), "GPU")
    shown = ", ".join(f"{times} x {name}" for name, times in counts.items())
    return shown if len(shown) <= _LONGEST_MODELS else f"{counted(len(gpus), 'GPU')} of {counted(len(counts), 'model')}"


def choose_gpus(chosen: Sequence[Gpu]) -> tuple[str, ...]:
    """The commands that show these GPUs to CUDA: by index in the order of their addresses, else by UUID.

    None where neither was read: a wrong index drops a healthy GPU.
    """
    if all(gpu.numbered for gpu in chosen):
        indices = ",".join(str(gpu.index) for gpu in chosen)
        return (set_variable(ORDER_VARIABLE, "PCI_BUS_ID"), set_variable(VARIABLE, indices))
    uuids = [gpu.uuid for gpu in chosen if gpu.uuid]
    return (set_variable(VARIABLE, ",".join(uuids)),) if len(uuids) == len(chosen) else ()


def judge(
    subject: str,
    observed: str,
    *,
    ok: bool,
    expected: str,
    remedy: Remedy,
    rollback: Rollback = READ_ONLY,
    brief: str = "",
    value: str = "",
    explained_by: tuple[str, ...] = (),
) -> Evidence | Finding:
    """Evidence if the subject is ok, or a finding with the same observation.

    Args:
        subject: what it is about.
        observed: the observation.
        ok: whether it is as expected.
        expected: the criterion.
        remedy: the fix.
        rollback: how to undo the fix.
        brief: the short form of the problem.
        value: the value for the family's line, if it is ok.
        explained_by: the checks that explain the problem.
    """
    if ok:
        return Evidence(subject=subject, observed=observed, brief=value)
    return Finding(
        subject=subject,
        observed=observed,
        expected=expected,
        remedy=remedy,
        rollback=rollback,
        brief=brief,
        explained_by=explained_by,
    )


def field_diagnostic(found: Sequence[Gpu], gpus: Gpus, section: str) -> Remedy:
    """Replace GPUs with worn-out memory, after reading this section of ``nvidia-smi -q``."""
    summary = "Stop using the GPU and test it with NVIDIA's field diagnostic."
    return Remedy.inspect(summary, smi(found, f"-q -d {section}", among=gpus))


def reset(found: Sequence[Gpu]) -> Remedy:
    """Reset these GPUs."""
    named = [gpu.selector for gpu in found if gpu.selector]
    return Remedy.reboot(
        "Stop all processes on the GPU, then reset it.",
        *((f"sudo nvidia-smi --gpu-reset -i {quoted(','.join(named))}",) if len(named) == len(found) else ()),
        look=(DRIVER_MESSAGES,),
    )
