from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._clipping import judge_clipping
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases


@check(
    "smoke.clipping-options",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.features",
)
def clipping_options(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Clipping by global norm and by value, and in train_step, matches one device.

    Why: as for smoke.clipping, which has clipnorm. The case clip-after-reduction trains the first alternative, and
    tf-keras the second, where tf_keras is installed.
    Remedy: clip in a custom train_step after an all_reduce of the gradients, or train with tf_keras.
    Source: https://keras.io/api/optimizers/
    Failure modes: keras3_clips_each_replica
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)
    clipped = ("global-clipnorm", "clipvalue")
    yield from judge_cases(run, clipped, lambda case: judge_clipping(compare, case, "job.clipping", "smoke.clipping"))
    yield from judge_cases(run, ("clip-after-reduction", "tf-keras"), compare.judge)
