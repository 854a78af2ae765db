"""Whether the PCIe links of working GPUs are fast."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import LOOKING, readings


@check(
    "topology.pcie-generation", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"]
)
def pcie_generation(gpus: Gpus, *, busy_from_percent: int = 20) -> Iterator[Outcome]:
    """The PCIe link of every GPU that works or stands ready (P0) runs at the generation that GPU and slot can do.

    Why: each generation doubles a link's speed; one that came up slow after a bad seat or riser slows input and
    gradients down. An idle GPU lowers its link's generation on purpose: its link is no subject here.
    Remedy: compare the link's status with its capability under load; restart once, then reseat the GPU or replace the
    riser.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "pcie_generation", "pcie_generation_max")
    yield from others
    idle = 0
    for gpu in judged:
        words = f"generation {gpu.pcie_generation} of {gpu.pcie_generation_max}"
        if (gpu.pcie_generation or 0) >= (gpu.pcie_generation_max or 0):
            yield Evidence(subject=gpu.subject, observed=words)
        elif _works(gpu, busy_from_percent):
            yield _finding(gpu, words)
        elif gpu.performance_state is None:
            error = gpu.errors.get("performance_state", "no reason given")
            yield Unjudged(subject=gpu.subject, reason=f"{words}, and whether it is idle was not read ({error})")
        else:
            idle += 1
    if idle == len(judged) and judged:
        yield NotApplicable(reason="every GPU idles, and lowers its link's generation on purpose")


def _works(gpu: Gpu, busy_from_percent: int) -> bool:
    return gpu.performance_state == 0 or (gpu.utilization_gpu_percent or 0) >= busy_from_percent


def _finding(gpu: Gpu, words: str) -> Finding:
    where = f" -s {gpu.bus_id}" if gpu.bus_id else " -d 10de:"
    state = "" if gpu.performance_state is None else f" in P{gpu.performance_state}"
    busy = "" if gpu.utilization_gpu_percent is None else f", {gpu.utilization_gpu_percent} % busy"
    return Finding(
        subject=gpu.subject,
        observed=f"{words}{state}{busy}",
        expected=f"generation {gpu.pcie_generation_max}",
        remedy=Remedy(
            summary="Read the link again under load; restart once, then reseat the GPU or replace the riser.",
            action=Action.INSPECT_HARDWARE,
            commands=(f"sudo lspci -vv{where} | grep -E 'LnkCap:|LnkSta:'", "nvidia-smi -q -d PERFORMANCE"),
        ),
        rollback=LOOKING,
    )
