from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Finding, Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, finding, judge_cases

_REMEDY = "Use ReductionToOneDevice() or NcclAllReduce() as cross_device_ops, or an even number of replicas."


@check(
    "smoke.hierarchical-copy",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.cross-device",
)
def hierarchical_copy(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """HierarchicalCopyAllReduce matches one device.

    Why: TensorFlow splits n devices into two groups of n // 2. With an odd number of devices, from three on, the
    gradients of one device are silently left out of every sum. On three CPU devices with TensorFlow 2.21, the weights
    differ by 0.11 from those of one device. This is a warning because only jobs that select this method are affected.
    Remedy: use ReductionToOneDevice, NCCL, or an even number of replicas.
    Sources:
        https://www.tensorflow.org/api_docs/python/tf/distribute/HierarchicalCopyAllReduce
        https://github.com/tensorflow/tensorflow/blob/v2.21.0/tensorflow/python/distribute/cross_device_utils.py
    Failure modes: hierarchical_copy_odd_devices
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        outcome = compare.judge(case)
        if not isinstance(outcome, Finding) or not (case.replicas or 0) % 2:
            return outcome
        observed = f"{outcome.observed}; with an odd number of devices, one is left out of every sum"
        return finding(case, observed, outcome.expected, _REMEDY, brief="leaves one of an odd number of devices out")

    yield from judge_cases(run, ("hierarchical-copy",), judge)
