"""Whether peer access is claimed where NVIDIA's driver offers none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks.topology._p2p import pairs_to_judge

_WITHOUT = re.compile(r"GeForce RTX [45]0\d\d")


@check("topology.p2p-trusted", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def p2p_trusted(gpus: Gpus) -> Iterator[Outcome]:
    """No two GeForce RTX 40 or 50 cards claim peer access, which NVIDIA's driver does not offer them.

    Why: a patched kernel module reports P2P as OK on these cards. It was seen to copy wrong data on some machines,
    without an error: the loss becomes NaN, or the weights are quietly wrong.
    Remedy: compare a training with NCCL_P2P_DISABLE=1 to one without; return to NVIDIA's own module where they differ.
    Sources:
        https://github.com/tinygrad/open-gpu-kernel-modules/issues/29
        https://github.com/tensorflow/tensorflow/issues/62915
        https://github.com/sgl-project/sglang/pull/531
    """
    by_index = {gpu.index: gpu for gpu in gpus.devices}
    subjects = [
        pair for pair in pairs_to_judge(gpus) if all(_has_none(by_index[index]) for index in (pair.first, pair.second))
    ]
    for pair in subjects:
        statuses = {pair.p2p_read, pair.p2p_write}
        if "OK" in statuses:
            yield Finding(
                subject=pair.subject,
                observed="P2P OK, which NVIDIA's driver does not offer these cards",
                expected="GNS (GPU not supported)",
                remedy=Remedy(
                    summary="Forbid peer access for the job, or return to NVIDIA's own kernel module.",
                    action=Action.CONFIGURE,
                    commands=("export NCCL_P2P_DISABLE=1", "modinfo nvidia | head"),
                ),
                rollback=Rollback.to("peer access allowed, as recorded", "unset NCCL_P2P_DISABLE"),
            )
        elif None in statuses:
            error = pair.errors.get("p2p_read") or pair.errors.get("p2p_write") or "no reason given"
            yield Unjudged(subject=pair.subject, reason=f"P2P status not read ({error})")
        else:
            yield Evidence(subject=pair.subject, observed=f"P2P {'/'.join(sorted(map(str, statuses)))}")
    if not subjects and gpus.devices:
        yield NotApplicable(reason="there are no two GeForce RTX 40 or 50 cards")


def _has_none(gpu: Gpu) -> bool:
    return bool(_WITHOUT.search(gpu.name or ""))
