from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Evidence, Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, fit_unsupported, judge_cases


@check(
    "smoke.central-storage",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.central-storage",
)
def central_storage(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """CentralStorageStrategy matches one device, with fit and a custom loop.

    Why: the strategy is experimental, and Keras 3 supports it partly. Keras 3.15.1 computes the correct weights, but
    fit reports incorrect losses, and a model with BatchNormalization raises a ValueError. This is a warning because
    only jobs that use the strategy are affected.
    Remedy: use MirroredStrategy, or a custom training loop.
    Source: https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CentralStorageStrategy
    Failure modes: keras3_central_storage_loss
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance, mirrored=False)
    remedy = "Use MirroredStrategy, or a custom training loop."

    def judge(case: SmokeCase) -> Outcome:
        outcome = compare.judge(case)
        if isinstance(outcome, Evidence) or case.name != "fit":
            return outcome
        return fit_unsupported(run, case, "CentralStorageStrategy", remedy)

    yield from judge_cases(run, ("fit", "custom-loop"), judge, trained=False)
