"""Whether CentralStorageStrategy trains as one device does."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Evidence, Outcome, Severity
from kdoctor_checks.smoke._cases import TOLERANCE
from kdoctor_checks.smoke._strategies import each_case, equals_one_device, unsupported


@check(
    "smoke.central-storage",
    severity=Severity.WARNING,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.central-storage",
)
def central_storage(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """CentralStorageStrategy trains as one device does, by fit and by a custom loop.

    Why: it is experimental, and Keras 3 supports it by half: 3.15.1 ends with the right weights but fit reports
    losses that are not those of the training, and a model with BatchNormalization raises a ValueError. Only a job
    that uses it is concerned: hence a warning.
    Remedy: use MirroredStrategy, or a custom training loop.
    Source: https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CentralStorageStrategy
    """

    def judge(case: SmokeCase) -> Outcome:
        outcome = equals_one_device(run, case, target, packages, tolerance=tolerance, mirrored=False)
        if isinstance(outcome, Evidence) or case.name != "fit":
            return outcome
        return unsupported(
            run, case, "CentralStorageStrategy", "Use MirroredStrategy, or a custom training loop, which is right here."
        )

    yield from each_case(run, ("fit", "custom-loop"), judge)
