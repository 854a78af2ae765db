from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases


@check("smoke.state", severity=Severity.ERROR, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.state")
def state(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Optimizers, metrics and callbacks keep the same state as on one device.

    Why: moments and momentum are kept per variable on each replica, a metric adds up over all replicas, and a callback
    runs once per global step. The loss falls even if an update is lost or counted twice.
    Remedy: look for a replaced optimizer or callback, or install Keras 3.10 or later.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)
    yield from judge_cases(run, ("adam", "momentum"), lambda case: compare.count_problem(case) or compare.judge(case))
