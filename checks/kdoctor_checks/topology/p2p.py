"""Whether GPUs may reach each other's memory."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import LOOKING
from kdoctor_checks.topology._p2p import describe, geforce, pairs_to_judge, told_by_pairs


@check("topology.p2p", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def p2p(gpus: Gpus) -> Iterator[Outcome]:
    """Every two GPUs may reach each other's memory directly (P2P).

    Why: without peer access the gradients take the way through the host's memory, which is slower several times over.
    On server GPUs it points at the chipset, a virtual machine, a fabric that is not up, or a setting. GeForce cards
    are judged by topology.p2p-geforce, and GPUs on two sockets by topology.pairs.
    Remedy: look at the status that the driver gives, and at fabric, IOMMU and ACS; or start knowingly.
    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/gpu_troubleshooting.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    subjects = [pair for pair in pairs_to_judge(gpus) if not geforce(pair, gpus)]
    judged = False
    for pair in subjects:
        statuses = {pair.p2p_read, pair.p2p_write}
        if told_by_pairs(pair):
            continue
        judged = True
        if statuses == {"OK"}:
            yield Evidence(subject=pair.subject, observed="P2P OK")
        elif statuses - {"OK", None} and geforce(pair, gpus) is None:
            reason = f"{describe(pair)}; which is normal for GeForce cards, and the GPUs' names were not read"
            yield Unjudged(subject=pair.subject, reason=reason)
        elif statuses - {"OK", None}:
            yield Finding(
                subject=pair.subject,
                observed=describe(pair),
                expected="P2P OK for reading and writing",
                remedy=Remedy(
                    summary="Look at the status, and at fabric, IOMMU and ACS; or start knowingly.",
                    action=Action.CONFIGURE,
                    commands=("nvidia-smi topo -p2p r", "nvidia-smi topo -p2p w", "nvidia-smi topo -m"),
                ),
                rollback=LOOKING,
            )
        else:
            error = pair.errors.get("p2p_read") or pair.errors.get("p2p_write") or "no reason given"
            yield Unjudged(subject=pair.subject, reason=f"P2P status not read ({error})")
    if gpus.count == 1 == len(gpus.devices):
        yield NotApplicable(reason="there is one GPU")
    elif gpus.devices and not judged:
        yield NotApplicable(reason="no two GPUs of other than GeForce cards answer within a socket")
