"""Whether GeForce cards may reach each other's memory."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Severity
from kdoctor_checks._gpus import LOOKING, configure
from kdoctor_checks.topology._p2p import describe, geforce, pairs_to_judge, unread


@check("topology.p2p-geforce", severity=Severity.INFO, needs_gpus=True, requires=["driver.library-matches-module"])
def p2p_geforce(gpus: Gpus) -> Iterator[Outcome]:
    """All pairs of GeForce cards have peer-to-peer access (P2P).

    Why: since the RTX 40 series, NVIDIA's driver offers GeForce cards no peer access over PCIe ("GNS"). This is
    normal. Gradients go through host memory, which explains a job that is slower than expected.
    Remedy: nothing to fix. If NCCL tries peer access anyway, set NCCL_P2P_DISABLE=1.
    Sources:
        https://github.com/sgl-project/sglang/pull/531
        https://github.com/noonghunna/club-3090/issues/1229
    Failure modes: geforce_p2p_nan
    """
    subjects = [pair for pair in pairs_to_judge(gpus) if geforce(pair, gpus)]
    for pair in subjects:
        statuses = {pair.p2p_read, pair.p2p_write}
        if statuses == {"OK"}:
            yield Evidence(subject=pair.subject, observed="P2P supported")
        elif statuses - {"OK", None}:
            yield Finding(
                subject=pair.subject,
                observed=f"no peer access ({describe(pair)})",
                expected="P2P read and write access",
                remedy=configure(
                    "Expect gradients to go through host memory. If NCCL tries peer access anyway, disable it.",
                    "nvidia-smi topo -p2p r",
                    "export NCCL_P2P_DISABLE=1",
                ),
                rollback=LOOKING,
            )
        else:
            yield unread(pair)
    if not subjects and gpus.devices:
        yield NotApplicable(reason="no pair of GPUs with a GeForce card")
