from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases
from kdoctor_checks.smoke._values import judge_trained


@check("smoke.callbacks", severity=Severity.ERROR, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.callbacks")
def callbacks(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Callbacks decide as on one device.

    Why: LearningRateScheduler and ReduceLROnPlateau change the optimizer on every replica. EarlyStopping and
    ModelCheckpoint choose an epoch by a loss of all replicas. If one of them decides differently, the job ends with
    other weights than on one device, without an error.
    Remedy: look for a custom callback or metric, or install Keras 3.10 or later.
    Source: https://keras.io/api/callbacks/
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)
    yield from judge_cases(run, ("learning-rate", "best-epoch"), lambda case: judge_trained(compare, case))
