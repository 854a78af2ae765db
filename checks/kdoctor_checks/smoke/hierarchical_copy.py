"""Whether HierarchicalCopyAllReduce adds up the gradients of all devices."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Finding, Outcome, Severity
from kdoctor_checks.smoke._cases import TOLERANCE
from kdoctor_checks.smoke._strategies import change_code, each_case, equals_one_device


@check(
    "smoke.hierarchical-copy",
    severity=Severity.WARNING,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.cross-device",
)
def hierarchical_copy(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """HierarchicalCopyAllReduce gives the weights of one device.

    Why: TensorFlow cuts the devices in two groups of n // 2 each. Of an odd number, from three on, it leaves one
    device's gradients out of every sum, and says nothing: over three CPU devices TensorFlow 2.21 ended 0.11 from one
    device's weights. Only a job that names it (often in place of NCCL) is concerned: hence a warning.
    Remedy: use ReductionToOneDevice, NCCL, or an even number of replicas.
    Sources:
        https://www.tensorflow.org/api_docs/python/tf/distribute/HierarchicalCopyAllReduce
        https://github.com/tensorflow/tensorflow/blob/v2.21.0/tensorflow/python/distribute/cross_device_utils.py
    """

    def judge(case: SmokeCase) -> Outcome:
        outcome = equals_one_device(run, case, target, packages, tolerance=tolerance)
        if not isinstance(outcome, Finding) or case.outcome != "trained" or not (case.replicas or 0) % 2:
            return outcome
        observed = f"{outcome.observed}; one of an odd number of devices is left out of every sum"
        advice = "Use ReductionToOneDevice() or NcclAllReduce() as cross_device_ops, or an even number of replicas."
        return change_code(case, observed, outcome.expected, advice)

    yield from each_case(run, ("hierarchical-copy",), judge)
