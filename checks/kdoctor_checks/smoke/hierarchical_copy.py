from kdoctor.facts import SmokeCase
from kdoctor.model import Finding, Outcome, Severity
from kdoctor_checks.smoke._judging import Comparison, finding
from kdoctor_checks.smoke._trained import trained

_REMEDY = "Use ReductionToOneDevice() or NcclAllReduce() as cross_device_ops, or an even number of replicas."


@trained("smoke.hierarchical-copy", severity=Severity.WARNING, scenario="smoke.cross-device")
def hierarchical_copy(compare: Comparison, case: SmokeCase) -> Outcome:
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
    outcome = compare.judge(case)
    if not isinstance(outcome, Finding) or not (case.replicas or 0) % 2:
        return outcome
    observed = f"{outcome.observed}; with an odd number of devices, one is left out of every sum"
    return finding(case, observed, outcome.expected, _REMEDY, brief="leaves one of an odd number of devices out")
