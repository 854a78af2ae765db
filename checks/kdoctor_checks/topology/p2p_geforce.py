from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import NotApplicable, Outcome, Remedy, Severity
from kdoctor_checks._gpus import DRIVER
from kdoctor_checks.topology._p2p import geforce, judge_pair, pairs_to_judge, unanswered_pairs

_REMEDY = Remedy.configure(
    "Expect gradients to go through host memory. If NCCL tries peer access anyway, disable it.",
    "export NCCL_P2P_DISABLE=1",
    look=("nvidia-smi topo -p2p r",),
)


@check("topology.p2p-geforce", severity=Severity.INFO, needs_gpus=True, requires=DRIVER)
def p2p_geforce(gpus: Gpus) -> Iterator[Outcome]:
    """All pairs of GeForce cards have peer-to-peer access (P2P).

    Why: since the RTX 40 series, NVIDIA's driver offers GeForce cards no peer access over PCIe ("GNS"). This is
    normal. Gradients go through host memory, which explains a job that is slower than expected.
    Remedy: expect gradients to go through host memory. If NCCL tries peer access anyway, set NCCL_P2P_DISABLE=1.
    Sources:
        https://github.com/sgl-project/sglang/pull/531
        https://github.com/noonghunna/club-3090/issues/1229
    Failure modes: geforce_p2p_nan
    """
    pairs = [pair for pair in pairs_to_judge(gpus) if geforce(pair, gpus)]
    for pair in pairs:
        yield judge_pair(pair, gpus, _REMEDY)
    if pairs:
        yield from unanswered_pairs(gpus)
    elif gpus.devices:
        yield NotApplicable(reason="no pair of GPUs with a GeForce card")
