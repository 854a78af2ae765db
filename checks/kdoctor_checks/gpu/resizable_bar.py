import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import NotApplicable, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import DRIVER, judge, readings, size, smi

_BEFORE = ("Kepler", "Maxwell", "Pascal", "Volta", "Turing")
"""Architectures without resizable BAR."""
_SINCE = re.compile(r"RTX (?:[3-9]0\d\d|A\d|PRO|\d000 \w+ Generation)|\b(?:A|L|H|B|GH|GB)\d{1,3}S?\b")
"""In the names of models since Ampere."""
_AMPERE = 8


@check("gpu.resizable-bar", severity=Severity.INFO, needs_gpus=True, requires=DRIVER)
def resizable_bar(gpus: Gpus) -> Iterator[Outcome]:
    """The BAR1 of every GPU covers its whole memory.

    Why: BAR1 is the window through which the CPU and other devices access a GPU's memory. If it is smaller (256 MiB
    without resizable BAR), transfers between devices go through it in pieces. Training works, but peer access over PCIe
    and network cards may be slower. Cards before Ampere (GeForce RTX 30) have no resizable BAR, and are not judged.
    Remedy: enable "Above 4G Decoding" and "Re-Size BAR" in the firmware setup, if the card supports it.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "bar1_total_bytes", "memory_total_bytes")
    yield from others
    fixed = [gpu for gpu in judged if (gpu.bar1_total_bytes or 0) < (gpu.memory_total_bytes or 0) and not _resizes(gpu)]
    judged = [gpu for gpu in judged if gpu not in fixed]
    if fixed and not judged:
        names = ", ".join(sorted({gpu.name or "this model" for gpu in fixed}))
        yield NotApplicable(reason=f"no resizable BAR is known for {names}")
    small = [gpu for gpu in judged if (gpu.bar1_total_bytes or 0) < (gpu.memory_total_bytes or 0)]
    for gpu in judged:
        bar, memory = gpu.bar1_total_bytes or 0, gpu.memory_total_bytes or 0
        yield judge(
            gpu.subject,
            f"BAR1 is {size(bar)}, memory is {size(memory)}",
            ok=gpu not in small,
            expected=f"BAR1 of at least {size(memory)}",
            remedy=Remedy.configure(
                'Enable "Above 4G Decoding" and "Re-Size BAR" in the firmware setup, if the card supports it.',
                look=(smi(small, "-q -d MEMORY", among=gpus),),
            ),
            rollback=Rollback.irreversible("not possible (firmware settings are not recorded; write them down first)"),
        )


def _resizes(gpu: Gpu) -> bool:
    """Whether the model is known to have resizable BAR."""
    if gpu.architecture:
        return gpu.architecture not in _BEFORE
    if gpu.compute_capability:
        return int(gpu.compute_capability.split(".")[0]) >= _AMPERE
    return bool(_SINCE.search(gpu.name or ""))
