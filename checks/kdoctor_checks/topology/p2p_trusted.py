import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import DRIVER
from kdoctor_checks.topology._p2p import pairs_to_judge, unanswered_pairs, unread

_WITHOUT_P2P = re.compile(r"GeForce RTX [45]0\d\d")


@check("topology.p2p-trusted", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def p2p_trusted(gpus: Gpus) -> Iterator[Outcome]:
    """No pair of GeForce RTX 40 or 50 cards reports unsupported peer access.

    Why: NVIDIA's driver offers these cards no peer access, but a patched kernel module does. On some machines it copied
    wrong data, without an error: the loss becomes NaN, or the weights are silently wrong.
    Remedy: compare a training with NCCL_P2P_DISABLE=1 to one without. If they differ, return to NVIDIA's module.
    Sources:
        https://github.com/tinygrad/open-gpu-kernel-modules/issues/29
        https://github.com/tensorflow/tensorflow/issues/62915
        https://github.com/sgl-project/sglang/pull/531
    """
    lacking = {gpu.index for gpu in gpus.devices if _WITHOUT_P2P.search(gpu.name or "")}
    subjects = [pair for pair in pairs_to_judge(gpus) if {pair.first, pair.second} <= lacking]
    for pair in subjects:
        statuses = {pair.p2p_read, pair.p2p_write}
        if "OK" in statuses:
            yield Finding(
                subject=pair.subject,
                brief="P2P is reported as supported, unlike NVIDIA's driver does",
                observed="the driver reports P2P as supported, but NVIDIA's driver does not offer it for these cards",
                expected="GNS (GPU not supported)",
                remedy=Remedy.configure(
                    "Disable peer access for the job, or return to NVIDIA's kernel module.",
                    "export NCCL_P2P_DISABLE=1",
                    look=("modinfo nvidia | head",),
                ),
                rollback=Rollback.to("allow peer access again", "unset NCCL_P2P_DISABLE"),
            )
        elif None in statuses:
            yield unread(pair)
        else:
            yield Evidence(subject=pair.subject, observed=f"P2P {'/'.join(sorted(map(str, statuses)))}")
    if subjects:
        yield from unanswered_pairs(gpus)
    elif gpus.devices:
        yield NotApplicable(reason="no pair of GeForce RTX 40 or 50 cards")
