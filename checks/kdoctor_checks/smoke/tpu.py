"""Whether a TPU trains as one device does."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._strategies import each_case, equals_one_device


@check("smoke.tpu", severity=Severity.WARNING, requires=["versions.tensorflow-installed"], scenario="smoke.tpu")
def tpu(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = 0.02
) -> Iterator[Outcome]:
    """A custom loop under TPUStrategy ends near the weights of the CPU.

    Why: the TPU multiplies in bfloat16, so equality is coarse (``tolerance``). Where TensorFlow finds no TPU, nothing
    is tried.
    Remedy: look at the TPU's runtime and at the version of libtpu.
    Source: https://www.tensorflow.org/guide/tpu
    """
    yield from each_case(
        run,
        ("custom-loop",),
        lambda case: equals_one_device(
            run, case, target, packages, tolerance=tolerance, loss_tolerance=tolerance, mirrored=False
        ),
        spread=False,
    )
