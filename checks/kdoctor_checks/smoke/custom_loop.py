"""Whether a training loop written by hand gives what one device gives."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._cases import TOLERANCE
from kdoctor_checks.smoke._strategies import each_case, equals_one_device


@check(
    "smoke.custom-loop",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.custom-loop",
)
def custom_loop(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """A custom training loop over all replicas ends with the weights of one device.

    Why: a loop of one's own is the way out wherever fit does not support a strategy, and it depends on the optimizer
    adding up the replicas' gradients (strategy.run, compute_average_loss over the global batch). If that is wrong,
    the loop is no way out.
    Remedy: use a Keras that adds up gradients over replicas rightly (3.10 or later, or tf_keras).
    Source: https://www.tensorflow.org/tutorials/distribute/custom_training
    """
    yield from each_case(
        run, ("mirrored",), lambda case: equals_one_device(run, case, target, packages, tolerance=tolerance)
    )
