from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import DRIVER
from kdoctor_checks.topology._p2p import (
    describe,
    geforce,
    judge_pair,
    pairs_to_judge,
    reported_by_pairs,
    unanswered_pairs,
)

_REMEDY = Remedy.configure(
    "Check the fabric, the IOMMU and ACS, or accept the slower path.",
    look=("nvidia-smi topo -p2p r", "nvidia-smi topo -p2p w", "nvidia-smi topo -m"),
)


@check("topology.p2p", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def p2p(gpus: Gpus) -> Iterator[Outcome]:
    """All pairs of GPUs have peer-to-peer access (P2P).

    Why: without peer access, gradients go through host memory, which is several times slower. On server GPUs, the cause
    is the chipset, a virtual machine, a fabric that is not up, or a setting. topology.p2p-geforce checks GeForce cards,
    topology.pairs GPUs on two sockets.
    Remedy: check the fabric, the IOMMU and ACS, or accept the slower path.
    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/gpu_troubleshooting.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    pairs = [pair for pair in pairs_to_judge(gpus) if not geforce(pair, gpus) and not reported_by_pairs(pair)]
    for pair in pairs:
        if {pair.p2p_read, pair.p2p_write} - {"OK", None} and geforce(pair, gpus) is None:
            reason = f"{describe(pair)}, which is normal for GeForce cards, but the names of the GPUs were not read"
            yield Unjudged(subject=pair.subject, reason=reason)
        else:
            yield judge_pair(pair, gpus, _REMEDY)
    if gpus.count == 1 == len(gpus.devices):
        yield NotApplicable(reason="only one GPU")
    elif pairs:
        yield from unanswered_pairs(gpus)
    elif gpus.devices:
        yield NotApplicable(reason="no pair of responding GPUs on one socket (GeForce: see topology.p2p-geforce)")
