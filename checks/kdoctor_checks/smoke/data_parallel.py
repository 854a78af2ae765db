from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TOLERANCE, Comparison, judge_cases


@check("smoke.data-parallel", severity=Severity.ERROR, scenario="smoke.data-parallel", explained_by=NO_GPU)
def data_parallel(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """DataParallel on JAX matches one device.

    Why: on several devices, Keras 3 trains with keras.distribution.DataParallel. It is also the alternative where Keras
    3 on TensorFlow does not support a strategy. JAX computes as if there were one device, so BatchNormalization and a
    smaller final batch must match too. Skipped if JAX is not installed.
    Remedy: install compatible versions of Keras and JAX, and look for patched code.
    Source: https://keras.io/guides/distribution/
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)
    yield from judge_cases(run, ("fit", "batch-normalization", "smaller-tail"), compare.judge)
