from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._clipping import judge_clipping
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases


@check(
    "smoke.clipping",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.silent-features",
)
def clipping(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Clipped gradients on all replicas match one device.

    Why: clipnorm, global_clipnorm and clipvalue limit the gradient of the global batch. Keras 3 limits the gradient of
    each replica instead and adds them up afterwards, without an error. This is a warning because only jobs that clip
    are affected; job.clipping is an error for such a job. smoke.clipping-options has the other ways of clipping and the
    alternatives.
    Remedy: clip in a custom train_step after an all_reduce of the gradients, or train with tf_keras.
    Source: https://keras.io/api/optimizers/
    Failure modes: keras3_clips_each_replica
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)
    yield from judge_cases(run, ("clipnorm",), lambda case: judge_clipping(compare, case, "job.clipping"))
