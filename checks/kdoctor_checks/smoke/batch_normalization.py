"""Whether BatchNormalization is sound over several replicas."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import TOLERANCE, did_not_finish, name_of, wrong_arithmetic
from kdoctor_checks.smoke._strategies import each_case, equals_one_device, in_short, weights_problem


@check(
    "smoke.batch-normalization",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.batch-normalization",
)
def batch_normalization(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """BatchNormalization over all replicas stays finite, and synchronised it gives the weights of one device.

    Why: plainly, each replica normalises by its own examples. That parts it from one device, the more so the fewer
    examples a replica has, and is no defect; how far is evidence. With synchronized=True the moments are those of the
    whole batch, so nothing is left to differ.
    Remedy: use a Keras whose moments are summed rightly (3.10 or later); for small shares use synchronized=True.
    Source: https://keras.io/api/layers/normalization_layers/batch_normalization/
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.name == "synchronized":
            return equals_one_device(run, case, target, packages, tolerance=tolerance)
        if case.outcome != "trained":
            return did_not_finish(run, case)
        if case.weights is None or (case.weight_deviation is None and not case.weights.nonfinite):
            return Unjudged(subject=name_of(case), reason="its weights were not read")
        problem = weights_problem(case.weights)
        if problem or None in case.losses:
            return wrong_arithmetic(run, case, problem or "a loss is not finite", target, packages)
        return Evidence(subject=name_of(case), observed=in_short(run, case))

    yield from each_case(run, ("plain", "synchronized"), judge)
