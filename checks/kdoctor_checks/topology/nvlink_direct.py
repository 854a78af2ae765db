from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus, PciDevices, Unavailable
from kdoctor.model import NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import DRIVER, RESPONDING, inactive_links, only_lost, readings, silent
from kdoctor_checks.topology._mesh import fewer_links, short_of_links
from kdoctor_checks.topology._nvlinks import is_card, judge_links, may_be_linked, switched


@check("topology.nvlink-direct", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def nvlink_direct(gpus: Gpus, pci: PciDevices | Unavailable, *, least: int = 0) -> Iterator[Outcome]:
    """All NVLinks between directly connected GPUs are active, at the same speed.

    Why: with a badly seated bridge only some links come up, and gradients take a slower path. Some machines leave links
    unused on purpose (cards with one bridge of three, or boards with some GPUs in a virtual machine), so this is only a
    warning. Cards without any active link have no bridge, and are ignored. In a matrix of a mesh with gaps (DGX-1), a
    GPU with fewer links than the others has lost a connection.
    Remedy: reseat the bridges, or set the expected number of links in the checklist and waive the rest.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "nvlinks")
    direct = [gpu for gpu in judged if not switched(gpu, pci) and may_be_linked(gpu)]
    gone = silent(gpus)
    short = {} if judged else short_of_links(gpus)
    if judged and not direct and only_lost(others):
        reason = "all NVLinks lead to NVSwitches" if any(map(may_be_linked, judged)) else "no GPU has an active NVLink"
        yield NotApplicable(reason=f"{reason} (topology.nvlink checks boards with NVSwitches)")
        return
    found = {
        gpu.subject: fewer_links(gpu, short[gpu.index], _remedy(gpu)) for gpu in gpus.devices if gpu.index in short
    }
    yield from (item for item in others if isinstance(item, NotApplicable) or item.subject not in found)
    yield from found.values()
    for gpu in direct:
        if gone and inactive_links(gpu):
            reason = "inactive links may lead to a GPU that does not respond"
            yield Unjudged(subject=f"NVLinks of {gpu.subject}", reason=reason, explained_by=(RESPONDING,))
        else:
            yield judge_links(gpu, (), least, _remedy(gpu), pairs=gpus.pairs)


def _remedy(gpu: Gpu) -> Remedy:
    what = "Reseat the bridges" if is_card(gpu) else "Restart once, then have the board serviced"
    return Remedy.inspect(
        f"{what}. If links are unused on purpose, waive this check for the GPU.",
        "nvidia-smi nvlink -s",
        "nvidia-smi topo -m",
    )
