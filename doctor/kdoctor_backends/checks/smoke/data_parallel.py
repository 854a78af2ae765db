from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_backends.scenarios import CASES
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._trained import trained


@trained("smoke.data-parallel", cases=CASES["smoke.data-parallel"], requires=())
def data_parallel(compare: Comparison, case: SmokeCase) -> Outcome:
    """DataParallel on JAX matches one device.

    Why: on several devices, Keras 3 trains with keras.distribution.DataParallel. It is also the alternative where Keras
    3 on TensorFlow does not support a strategy. JAX computes as if there were one device, so BatchNormalization and a
    smaller final batch must match too. Skipped if JAX is not installed.
    Remedy: install compatible versions of Keras and JAX, and look for patched code.
    Source: https://keras.io/guides/distribution/
    """
    return compare.judge(case)
