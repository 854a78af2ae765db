"""Whether GeForce cards may reach each other's memory."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import LOOKING
from kdoctor_checks.topology._p2p import describe, geforce, pairs_to_judge


@check("topology.p2p-geforce", severity=Severity.INFO, needs_gpus=True, requires=["driver.library-matches-module"])
def p2p_geforce(gpus: Gpus) -> Iterator[Outcome]:
    """Every two GeForce cards may reach each other's memory directly (P2P).

    Why: NVIDIA's driver offers GeForce cards no peer access over PCIe since the RTX 40 series ("GNS"), which is
    normal. Gradients take the way through the host's memory: good to know where a job is slower than hoped.
    Remedy: expect it; where NCCL tries peer access in spite of it, set NCCL_P2P_DISABLE=1.
    Sources:
        https://github.com/sgl-project/sglang/pull/531
        https://github.com/noonghunna/club-3090/issues/1229
    Failure modes: geforce_p2p_nan
    """
    subjects = [pair for pair in pairs_to_judge(gpus) if geforce(pair, gpus)]
    for pair in subjects:
        statuses = {pair.p2p_read, pair.p2p_write}
        if statuses == {"OK"}:
            yield Evidence(subject=pair.subject, observed="P2P OK")
        elif statuses - {"OK", None}:
            yield Finding(
                subject=pair.subject,
                observed=describe(pair),
                expected="P2P OK for reading and writing",
                remedy=Remedy(
                    summary="Expect gradients to pass through the host's memory; where NCCL tries peer access in "
                    "spite of it, forbid it.",
                    action=Action.CONFIGURE,
                    commands=("nvidia-smi topo -p2p r", "export NCCL_P2P_DISABLE=1"),
                ),
                rollback=LOOKING,
            )
        else:
            error = pair.errors.get("p2p_read") or pair.errors.get("p2p_write") or "no reason given"
            yield Unjudged(subject=pair.subject, reason=f"P2P status not read ({error})")
    if not subjects and gpus.devices:
        yield NotApplicable(reason="there are no two GPUs one of which is a GeForce card")
