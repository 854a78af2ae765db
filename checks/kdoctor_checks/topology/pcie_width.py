"""Whether the GPUs' PCIe links have all their lanes."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import readings


@check("topology.pcie-width", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def pcie_width(gpus: Gpus, *, least_share: float = 1.0, idle_from: int = 8) -> Iterator[Outcome]:
    """Every GPU's PCIe link runs at the full width that GPU and slot can do.

    Why: a link that came up narrow (x1 of x16 after a bad seat or riser) makes input and gradients many times
    slower, and every replica waits for it. Training stays right, hence a warning. The link's generation, and on
    some GPUs its width, falls while the GPU is idle: an idle GPU's narrow link is not judged, and the generation
    never is.
    Remedy: compare the link's status with its capability under load; restart, reseat the GPU or replace the riser.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "pcie_width", "pcie_width_max")
    yield from others
    for gpu in judged:
        width, widest = gpu.pcie_width or 0, gpu.pcie_width_max or 0
        if not width or not widest:
            yield Unjudged(subject=gpu.subject, reason=f"NVML gives a width of x{width} of x{widest}")
        elif width >= least_share * widest:
            yield Evidence(subject=gpu.subject, observed=_describe(gpu))
        elif gpu.performance_state is None:
            error = gpu.errors.get("performance_state", "no reason given")
            yield Unjudged(
                subject=gpu.subject, reason=f"{_describe(gpu)}, and whether it is idle was not read ({error})"
            )
        elif gpu.performance_state >= idle_from:
            yield Unjudged(subject=gpu.subject, reason=f"{_describe(gpu)}, but it is idle: read it again under load")
        else:
            yield _narrow(gpu)


def _describe(gpu: Gpu) -> str:
    state = "" if gpu.performance_state is None else f" in P{gpu.performance_state}"
    generation = f", generation {gpu.pcie_generation or '?'} of {gpu.pcie_generation_max or '?'}"
    return f"x{gpu.pcie_width} of x{gpu.pcie_width_max}{generation}{state}"


def _narrow(gpu: Gpu) -> Finding:
    where = f" -s {gpu.bus_id}" if gpu.bus_id else " -d 10de:"
    return Finding(
        subject=gpu.subject,
        observed=_describe(gpu),
        expected=f"x{gpu.pcie_width_max}",
        remedy=Remedy(
            summary="Compare the link's status with its capability; restart once, then reseat the GPU or replace the "
            "riser. A slot that is wired narrower on purpose: set least_share in the checklist.",
            action=Action.INSPECT_HARDWARE,
            commands=(f"sudo lspci -vv{where} | grep -E 'LnkCap:|LnkSta:'", "nvidia-smi -q -d PERFORMANCE"),
        ),
        rollback=Rollback.nothing("looking changes nothing"),
    )
