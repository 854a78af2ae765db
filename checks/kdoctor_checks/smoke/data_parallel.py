"""Whether Keras on JAX trains over several devices as on one."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._cases import TOLERANCE
from kdoctor_checks.smoke._strategies import each_case, equals_one_device


@check("smoke.data-parallel", severity=Severity.ERROR, scenario="smoke.data-parallel")
def data_parallel(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """keras.distribution.DataParallel on JAX ends with the weights of one device, which every device holds.

    Why: it is the way of Keras 3 to train on several devices, and the way out where Keras 3 on TensorFlow does not
    support a strategy. BatchNormalization and a smaller final batch are right there, too, for JAX computes as if there
    were one device. Not judged where JAX is not installed.
    Remedy: use a Keras and a JAX that are known to work together, and look for patched code.
    Source: https://keras.io/guides/distribution/
    """
    yield from each_case(
        run,
        ("fit", "batch-normalization", "smaller-tail"),
        lambda case: equals_one_device(run, case, target, packages, tolerance=tolerance),
    )
