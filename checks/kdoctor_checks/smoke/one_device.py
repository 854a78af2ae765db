"""Whether OneDeviceStrategy is what it says."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._cases import TOLERANCE
from kdoctor_checks.smoke._strategies import each_case, equals_one_device


@check(
    "smoke.one-device",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.one-device",
)
def one_device(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """OneDeviceStrategy trains as no strategy does, by fit and by a custom loop.

    Why: it is how a distributed job is tried on one device. If it differs from a plain training, the fault is in the
    strategy's machinery and not in anything between devices.
    Remedy: use a TensorFlow and a Keras that are known to work together.
    Source: https://www.tensorflow.org/api_docs/python/tf/distribute/OneDeviceStrategy
    """
    yield from each_case(
        run,
        ("fit", "custom-loop"),
        lambda case: equals_one_device(run, case, target, packages, tolerance=tolerance),
        spread=False,
    )
