from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, Comparison, judge_cases


@check("smoke.tpu", severity=Severity.WARNING, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.tpu")
def tpu(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = 0.02
) -> Iterator[Outcome]:
    """A custom loop under TPUStrategy comes close to the CPU's weights.

    Why: the TPU multiplies in bfloat16, so the comparison is coarse (``tolerance``). Skipped if TensorFlow
    finds no TPU.
    Remedy: check the TPU runtime and the version of libtpu.
    Source: https://www.tensorflow.org/guide/tpu
    """
    compare = Comparison(
        run=run, target=target, packages=packages, tolerance=tolerance, loss_tolerance=tolerance, mirrored=False
    )
    yield from judge_cases(run, ("custom-loop",), compare.judge, replicated=False)
