"""What checks of GPUs have in common."""

from __future__ import annotations

from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Action, Remedy, Rollback, Unjudged

MIB, GIB = 1024**2, 1024**3

RESET_NEEDED = Remedy(
    summary="Read what the kernel logged about the GPU, then restart the machine; a GPU that is lost again needs a "
    "technician.",
    action=Action.INSPECT_HARDWARE,
    commands=("sudo dmesg | grep -iE 'NVRM|Xid'", "nvidia-smi -L", "sudo reboot"),
)
NOTHING_CHANGED = Rollback.nothing("a restart changes no configuration")


def lost(gpu: Gpu) -> str | None:
    """The NVML error that says that the GPU is lost or must be reset, if one of its calls returned it.

    Those two errors (15 and 16) condemn this GPU alone.
    """
    for error in gpu.errors.values():
        plain = "".join(letter for letter in error.lower() if letter.isalpha())
        if plain.endswith(("gpuislost", "resetrequired")):
            return error
    return None


def answering(gpus: Gpus) -> tuple[Gpu, ...]:
    """The GPUs that are not lost."""
    return tuple(gpu for gpu in gpus.devices if not lost(gpu))


def unread(gpu: Gpu, *fields: str) -> Unjudged | None:
    """That this GPU cannot be judged, where one of the fields was not read; None where all were."""
    reasons = [
        f"{name.replace('_', ' ')} not read ({gpu.errors.get(name) or lost(gpu) or 'no reason given'})"
        for name in fields
        if getattr(gpu, name) is None
    ]
    return Unjudged(subject=gpu.subject, reason=", ".join(reasons)) if reasons else None


def size(value: int) -> str:
    """Bytes in the unit that nvidia-smi and df use: MiB below 10 GiB, else GiB."""
    return f"{value / MIB:.0f} MiB" if value < 10 * GIB else f"{value / GIB:.1f} GiB"
