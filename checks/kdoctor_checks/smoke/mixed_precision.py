from dataclasses import replace

from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._precision import judge_precision
from kdoctor_checks.smoke._trained import trained


@trained("smoke.mixed-precision", tolerance=0.01)
def mixed_precision(compare: Comparison, case: SmokeCase) -> Outcome:
    """Mixed precision keeps float32 variables, a stable loss scale and accurate weights.

    Why: mixed_float16 scales the loss so that small gradients survive, and lowers the scale whenever a gradient
    overflows. A scale that collapses, or variables in half precision, ruin a long training without an error. The
    weights come close to those of one device in float32 (measured: 5e-5 for float16, 8e-4 for bfloat16).
    Remedy: set the policy before creating the model, let Keras wrap the optimizer, and use compatible versions.
    Source: https://www.tensorflow.org/guide/mixed_precision
    """
    return judge_precision(replace(compare, loss_tolerance=10 * compare.tolerance), case)
