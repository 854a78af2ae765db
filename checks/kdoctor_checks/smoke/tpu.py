from dataclasses import replace

from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._trained import trained


@trained("smoke.tpu", severity=Severity.WARNING, tolerance=0.02, mirrored=False, replicated=False)
def tpu(compare: Comparison, case: SmokeCase) -> Outcome:
    """A custom loop under TPUStrategy comes close to the CPU's weights.

    Why: the TPU multiplies in bfloat16, so the comparison is coarse (``tolerance``). Skipped if TensorFlow
    finds no TPU.
    Remedy: check the TPU runtime and the version of libtpu.
    Source: https://www.tensorflow.org/guide/tpu
    """
    return replace(compare, loss_tolerance=compare.tolerance).judge(case)
