from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases


@check(
    "smoke.custom-loop", severity=Severity.ERROR, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.custom-loop"
)
def custom_loop(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """A custom training loop on all replicas matches one device.

    Why: a custom loop is the workaround wherever fit does not support a strategy. It relies on the optimizer to add up
    the gradients of the replicas (strategy.run, compute_average_loss over the global batch).
    Remedy: install a Keras that combines gradients correctly across replicas (3.10 or later, or tf_keras).
    Source: https://www.tensorflow.org/tutorials/distribute/custom_training
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)
    yield from judge_cases(run, ("mirrored",), compare.judge)
