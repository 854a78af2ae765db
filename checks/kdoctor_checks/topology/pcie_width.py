"""The PCIe width of GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Evidence, Finding, Outcome, Severity, Unjudged
from kdoctor_checks._gpus import READ_ONLY, inspect, readings


@check("topology.pcie-width", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def pcie_width(gpus: Gpus, *, least_share: float = 1.0, idle_from: int = 8) -> Iterator[Outcome]:
    """GPU PCIe links run at the full width that GPU and slot support.

    Why: a link that came up narrow (x1 of x16 because of a bad seat or riser) makes input and gradients many times
    slower, and every replica waits for it. Results stay correct, so this is only a warning. Idle GPUs lower the
    generation, and some of them the width, so the link of an idle GPU is not judged.
    Remedy: compare the link's status with its capability under load. Restart, reseat the GPU or replace the riser.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "pcie_width", "pcie_width_max")
    yield from others
    for gpu in judged:
        width, widest = gpu.pcie_width or 0, gpu.pcie_width_max or 0
        if not width or not widest:
            yield Unjudged(subject=gpu.subject, reason=f"NVML reports width x{width} of x{widest}")
        elif width >= least_share * widest:
            yield Evidence(subject=gpu.subject, observed=_describe(gpu))
        elif gpu.performance_state is None:
            error = gpu.errors.get("performance_state", "no reason given")
            yield Unjudged(
                subject=gpu.subject, reason=f"{_describe(gpu)}, and whether it is idle was not read ({error})"
            )
        elif gpu.performance_state >= idle_from:
            yield Unjudged(
                subject=gpu.subject, reason=f"{_describe(gpu)}, but the GPU is idle; read it again under load"
            )
        else:
            yield _narrow(gpu)


def _describe(gpu: Gpu) -> str:
    state = "" if gpu.performance_state is None else f" in P{gpu.performance_state}"
    generation = f", generation {gpu.pcie_generation or '?'} of {gpu.pcie_generation_max or '?'}"
    return f"PCIe x{gpu.pcie_width} of x{gpu.pcie_width_max}{generation}{state}"


def _narrow(gpu: Gpu) -> Finding:
    where = f" -s {gpu.bus_id}" if gpu.bus_id else " -d 10de:"
    return Finding(
        subject=gpu.subject,
        observed=_describe(gpu),
        expected=f"x{gpu.pcie_width_max}",
        remedy=inspect(
            "Compare the link's status with its capability. Restart once, then reseat the GPU or replace the riser. "
            "If the slot is narrower by design, set least_share in the checklist.",
            f"sudo lspci -vv{where} | grep -E 'LnkCap:|LnkSta:'",
            "nvidia-smi -q -d PERFORMANCE",
        ),
        rollback=READ_ONLY,
    )
