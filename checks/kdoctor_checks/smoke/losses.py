from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases
from kdoctor_checks.smoke._values import judge_trained


@check("smoke.losses", severity=Severity.ERROR, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.losses")
def losses(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Weighted and regularized losses train as on one device.

    Why: weights of examples, classes and outputs scale each replica's part of the loss, and a replica whose weights are
    all zero must not count. Regularizers are added once, not once per replica. The loss falls even if one of these is
    ignored.
    Remedy: look for a patched loss, or install Keras 3.10 or later.
    Source: https://keras.io/api/models/model_training_apis/
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)
    names = ("sample-weight", "class-weight", "regularizers", "outputs", "run-eagerly", "train-step")
    yield from judge_cases(run, names, lambda case: judge_trained(compare, case))
