from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus, NotCollected, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import DRIVER, readings
from kdoctor_checks.topology._pcie import bus_links, of_most, read_links, reseat


@check("topology.pcie-generation", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def pcie_generation(
    gpus: Gpus | Unavailable, pci: PciDevices | Unavailable, *, busy_from_percent: int = 20
) -> Iterator[Outcome]:
    """PCIe links of active GPUs run at the highest supported generation.

    Why: each generation doubles the speed of a link. A link that came up slow because of a bad seat or riser slows down
    input and gradients. An idle GPU lowers the generation on purpose, so only GPUs in P0 or under load are checked. A
    slot that is slower than those of most GPUs of the model is reported in any state.
    Remedy: compare the link's status with its capability under load. Restart once, then reseat the GPU or replace the
    riser.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    if isinstance(gpus, Unavailable):
        yield from _on_the_bus(gpus, pci)
        return
    judged, others = readings(gpus, "pcie_generation", "pcie_generation_max")
    yield from others
    idle = 0
    slow: list[Gpu] = []
    for gpu in judged:
        observed = _link(gpu)
        usual = of_most(gpu, judged, lambda other: other.pcie_generation_max) or 0
        if usual > (gpu.pcie_generation_max or 0):
            yield _finding(gpu, [gpu], usual)
        elif (gpu.pcie_generation or 0) >= (gpu.pcie_generation_max or 0):
            yield Evidence(subject=gpu.subject, observed=observed)
        elif gpu.performance_state == 0 or (gpu.utilization_gpu_percent or 0) >= busy_from_percent:
            slow.append(gpu)
        elif gpu.performance_state is None:
            error = gpu.errors.get("performance_state", "no reason given")
            yield Unjudged(subject=gpu.subject, reason=f"{observed}, and whether it is idle was not read ({error})")
        else:
            idle += 1
    yield from (_finding(gpu, slow, gpu.pcie_generation_max or 0) for gpu in slow)
    if idle == len(judged) and judged:
        yield NotApplicable(reason="no GPU is in P0 or busy, and others may lower the generation")


def _link(gpu: Gpu) -> str:
    return f"PCIe generation {gpu.pcie_generation} of {gpu.pcie_generation_max}"


def _finding(gpu: Gpu, slow: Sequence[Gpu], expected: int) -> Finding:
    narrow = gpu.pcie_width is not None and gpu.pcie_width < (gpu.pcie_width_max or 0)
    state = "" if gpu.performance_state is None else f" in P{gpu.performance_state}"
    busy = "" if gpu.utilization_gpu_percent is None else f", {gpu.utilization_gpu_percent} % busy"
    return Finding(
        subject=gpu.subject,
        observed=f"{_link(gpu)}{state}{busy}",
        brief=_link(gpu) if expected == gpu.pcie_generation_max else f"{_link(gpu)}, most have {expected}",
        expected=f"generation {expected}",
        remedy=Remedy.inspect(f"Read the link again under load. Restart once, then {reseat(slow)}.", *read_links(slow)),
        explained_by=("topology.pcie-width",) if narrow else (),
    )


def _on_the_bus(gpus: Unavailable, pci: PciDevices | Unavailable) -> Iterator[Outcome]:
    """The generations in a recording of the bus alone, which does not show whether a GPU is idle."""
    links = [link for link in bus_links(pci) if link.generation and link.generation_max]
    for link in links:
        if (link.generation or 0) >= (link.generation_max or 0):
            yield Evidence(subject=link.subject, observed=link.observed)
        else:
            yield Unjudged(subject=link.subject, reason=f"{link.observed}, which is normal for an idle GPU")
    if not links or not isinstance(gpus, NotCollected):
        yield Unjudged(subject="GPUs", reason=gpus.unavailable)
