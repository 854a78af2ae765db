"""Whether NVLinks that join GPUs directly are up."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus, PciDevices, Unavailable
from kdoctor.model import Action, Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor_checks._gpus import NOTHING_CHANGED, answering, readings
from kdoctor_checks.topology._nvlinks import judge_links, switched


@check("topology.nvlink-direct", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def nvlink_direct(gpus: Gpus, pci: PciDevices | Unavailable, *, least: int = 0) -> Iterator[Outcome]:
    """Every NVLink of GPUs that are joined directly is active, at the speed of the others.

    Why: a bridge that is badly seated brings some of its links up, and gradients take the slower way. Some machines
    leave links unused on purpose (a card with one bridge of three, some of a board's GPUs in a virtual machine),
    hence a warning. Cards none of whose links is active have no bridge, and are no subject.
    Remedy: reseat the bridges, or state in the checklist how many links are expected and waive the rest.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "nvlinks")
    yield from others
    direct = [gpu for gpu in judged if not switched(gpu, pci) and _joined(gpu)]
    if direct and len(answering(gpus)) < len(gpus.devices):
        yield NotApplicable(reason="links that are down may lead to the GPU that does not answer (gpu.responding)")
        return
    for gpu in direct:
        for outcome in judge_links(gpu, (), least):
            yield outcome if not isinstance(outcome, str) else _finding(gpu, outcome)
    if judged and not direct and not others:
        reason = "all NVLinks lead to NVSwitches" if any(map(_joined, judged)) else "no GPU has an active NVLink"
        yield NotApplicable(reason=f"{reason} (topology.nvlink judges boards with NVSwitches)")


def _joined(gpu: Gpu) -> bool:
    return any(link.active is not False for link in gpu.nvlinks or ())


def _finding(gpu: Gpu, observed: str) -> Finding:
    return Finding(
        subject=gpu.subject,
        observed=observed,
        expected="all links active, at one speed",
        remedy=Remedy(
            summary="Reseat the bridges; where links are unused on purpose, waive this for the GPU.",
            action=Action.INSPECT_HARDWARE,
            commands=(f"nvidia-smi nvlink -s -i {gpu.index}", "nvidia-smi topo -m"),
        ),
        rollback=NOTHING_CHANGED,
    )
