"""Whether the slots are as fast as the GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity
from kdoctor_checks._gpus import LOOKING, readings


@check("topology.pcie-slot", severity=Severity.INFO, needs_gpus=True, requires=["driver.library-matches-module"])
def pcie_slot(gpus: Gpus) -> Iterator[Outcome]:
    """Every GPU's slot can do the PCIe generation that the GPU can.

    Why: an older host, a riser or a setting of the firmware limits a GPU to a slower link than it was made for. Many
    machines are built so, hence no more than a note; but a GPU that once had a faster slot is worth a look.
    Remedy: look at the slot's link speed in the firmware's setup, and at risers; move the card to a faster slot.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    judged, others = readings(gpus, "pcie_generation_max", "pcie_generation_gpu_max")
    yield from others
    for gpu in judged:
        words = f"the slot can do generation {gpu.pcie_generation_max}, the GPU {gpu.pcie_generation_gpu_max}"
        if (gpu.pcie_generation_max or 0) >= (gpu.pcie_generation_gpu_max or 0):
            yield Evidence(subject=gpu.subject, observed=words)
            continue
        yield Finding(
            subject=gpu.subject,
            observed=words,
            expected=f"a slot of generation {gpu.pcie_generation_gpu_max}",
            remedy=Remedy(
                summary="Look at the slot's link speed in the firmware's setup, and at risers.",
                action=Action.INSPECT_HARDWARE,
                commands=(f"sudo lspci -vv -s {gpu.bus_id or '<bus id>'} | grep -E 'LnkCap:|LnkCap2:'",),
            ),
            rollback=LOOKING,
        )
