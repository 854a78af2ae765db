from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._cases import in_phase
from kdoctor_checks.smoke._frameworks import keras_of
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, did_not_finish, finding, judge_cases
from kdoctor_checks.smoke._optimizers import judge_optimizer

_REMEDY = (
    "Leave out ema_overwrite_frequency, so that fit writes the averages to the weights at its end (use_ema=True), or "
    "train with tf_keras."
)
_ERROR = "RuntimeError"
"""What Keras 3 raises: TensorFlow cannot merge the replicas inside a tf.cond."""


@check(
    "smoke.ema-overwrite",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.optimizer-options",
)
def ema_overwrite(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Writing the moving averages to the weights every few steps matches one device.

    Why: Keras 3 raises a RuntimeError about merge_call if use_ema is combined with ema_overwrite_frequency on several
    replicas. This is a warning because only jobs that use the option are affected. The case ema of
    smoke.optimizer-options trains the alternative.
    Remedy: leave out ema_overwrite_frequency, or train with tf_keras.
    Source: https://keras.io/api/optimizers/
    Failure modes: keras3_ema_overwrite
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        if case.error_type == _ERROR and "merge_call" in (case.error_message or ""):
            observed = f"{_ERROR} about merge_call {in_phase(case.phase)} ({keras_of(run)})"
            return finding(
                case, observed, "it trains", _REMEDY, brief="ema_overwrite_frequency fails on several replicas"
            )
        return judge_optimizer(compare, case) if case.outcome == "trained" else did_not_finish(run, case)

    yield from judge_cases(run, ("ema-overwrite",), judge, trained=False)
