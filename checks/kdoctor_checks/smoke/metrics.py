from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases
from kdoctor_checks.smoke._values import judge_reported, judge_trained


@check("smoke.metrics", severity=Severity.ERROR, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.metrics")
def metrics(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Metrics that fit reports on several replicas are correct.

    Why: each replica counts its own examples, and the counts are added up. A metric that is summed or averaged
    incorrectly misleads everybody who chooses a model by it, and callbacks that watch it. NumPy computes accuracy, AUC,
    precision, recall, RMSE, top-k accuracy and F1 from the same examples; train_on_batch is compared with one device.
    Remedy: install Keras 3.10 or later, and look for a patched or custom metric.
    Source: https://keras.io/api/metrics/
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)
    yield from judge_cases(run, ("binary", "classes"), lambda case: judge_reported(compare, case))
    yield from judge_cases(run, ("on-batch",), lambda case: judge_trained(compare, case))
