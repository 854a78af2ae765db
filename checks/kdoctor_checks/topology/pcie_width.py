from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Gpu, Gpus, NotCollected, PciDevices, Unavailable
from kdoctor.model import Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import DRIVER, judge, readings
from kdoctor_checks.topology._pcie import bus_links, of_most, passed_through, read_links, reseat

_BY_DESIGN = "If the slot is narrower by design, set least_share in the checklist."
_OF_HOSTS = 0.5
"""The share of the lanes that hosts give to GPUs that they pass through: clouds build T4s with x8 of x16."""


@check("topology.pcie-width", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def pcie_width(
    gpus: Gpus | Unavailable, pci: PciDevices | Unavailable, *, least_share: float = 1.0, idle_from: int = 8
) -> Iterator[Outcome]:
    """GPU PCIe links run at the full width that GPU and slot support, and most GPUs of the model have.

    Why: a bad seat or riser can make a link come up narrow (x1 of x16). Input and gradients are then many times slower,
    and every replica waits. Results stay correct, so this is only a warning. Idle GPUs lower the generation, and some
    of them the width. So the link of a GPU that is or may be idle is judged only if most such GPUs of its model have
    full width.
    Hosts pass GPUs through with half of their lanes, which is not reported.
    A slot that gives one GPU fewer lanes than most GPUs of its model have is reported, too. Without the driver, the
    width that lspci shows counts.
    Remedy: compare the link's status with its capability under load. Restart, reseat the GPU or replace the riser.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    if isinstance(gpus, Unavailable):
        yield from _on_the_bus(gpus, pci, least_share)
        return
    judged, others = readings(gpus, "pcie_width", "pcie_width_max")
    yield from others
    known = [gpu for gpu in judged if gpu.pcie_width and gpu.pcie_width_max]
    narrow = [gpu for gpu in known if (gpu.pcie_width or 0) < _least(gpu, least_share) * (gpu.pcie_width_max or 0)]
    all_nvlink = bool(gpus.pairs) and all(pair.nvlinks for pair in gpus.pairs)
    at_full = all(gpu.pcie_generation and gpu.pcie_generation == gpu.pcie_generation_max for gpu in judged)
    remedy = _remedy(reseat(narrow), *read_links(narrow))
    for gpu in judged:
        width, widest, state = gpu.pcie_width or 0, gpu.pcie_width_max or 0, gpu.performance_state
        generation = f"generation {gpu.pcie_generation or '?'} of {gpu.pcie_generation_max or '?'}"
        observed = f"PCIe x{width} of x{widest}, {generation}" + ("" if state is None else f" in P{state}")
        ok = gpu not in narrow
        is_decisive = 2 * width < widest and "not in" in gpu.errors.get("performance_state", "")
        may_be_idle = not is_decisive if state is None else state >= idle_from
        usual = of_most(gpu, known, lambda other: other.pcie_width_max) or 0
        if not width or not widest:
            yield Unjudged(subject=gpu.subject, reason=f"NVML reports width x{width} of x{widest}")
        elif not ok and may_be_idle and not _wide(gpu, known, narrow, idle_from):
            why = "whether it is idle was not read" if state is None else "the GPU is idle; read it again under load"
            yield Unjudged(subject=gpu.subject, reason=f"{observed}, and {why}")
        else:
            yield judge(
                gpu.subject,
                observed,
                ok=ok and width >= _least(gpu, least_share) * usual,
                expected=f"x{max(widest, usual)}" + (", as for most GPUs of this model" if usual > widest else ""),
                remedy=remedy,
                brief=f"PCIe x{width} of x{widest}" if usual <= widest else f"PCIe x{width}, most have x{usual}",
                value="" if all_nvlink else f"PCIe x{width}" + (f" gen {gpu.pcie_generation}" if at_full else ""),
            )


def _least(gpu: Gpu, least_share: float) -> float:
    return min(least_share, _OF_HOSTS) if passed_through(gpu) else least_share


def _remedy(then: str, *look: str) -> Remedy:
    return Remedy.inspect(
        f"Compare the link's status with its capability. Restart once, then {then}. {_BY_DESIGN}", *look
    )


def _wide(gpu: Gpu, known: Sequence[Gpu], narrow: Sequence[Gpu], idle_from: int) -> bool:
    """Whether most of the idle GPUs of this model have the full width, or most of those whose state was not read."""
    alike = [other for other in known if other.name == gpu.name]
    unread = [other for other in alike if other.performance_state is None]
    idle = unread if gpu in unread else [one for one in alike if (one.performance_state or 0) >= idle_from]
    return len(idle) > 2 * sum(other in narrow for other in idle)


def _on_the_bus(gpus: Unavailable, pci: PciDevices | Unavailable, least_share: float) -> Iterator[Outcome]:
    """The widths in a recording of the bus alone."""
    links = bus_links(pci)
    for link in links:
        yield judge(
            link.subject,
            link.observed,
            ok=link.width >= least_share * link.width_max,
            expected=f"x{link.width_max}",
            remedy=_remedy(reseat(()), f"sudo lspci -vv -s {quoted(link.device.bus_id)} | grep -E 'LnkCap:|LnkSta:'"),
            brief=f"PCIe x{link.width} of x{link.width_max}",
            value=f"{counted(len(links), 'GPU')} on the bus, PCIe x{link.width}",
        )
    if not links or not isinstance(gpus, NotCollected):
        yield Unjudged(subject="GPUs", reason=gpus.unavailable)
