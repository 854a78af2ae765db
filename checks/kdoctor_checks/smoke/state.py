"""Whether optimizers, metrics and callbacks with state are as on one device."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._cases import TOLERANCE
from kdoctor_checks.smoke._state import counted
from kdoctor_checks.smoke._strategies import each_case, equals_one_device


@check("smoke.state", severity=Severity.ERROR, requires=["versions.tensorflow-installed"], scenario="smoke.state")
def state(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Adam, momentum, a metric and a callback carry the same state over all replicas as on one device.

    Why: moments and momentum are kept for each variable on each replica, a metric adds up over all of them, and a
    callback is called once for each step of the whole. An update that is left out or counted twice is not seen in a
    loss that falls anyway.
    Remedy: look for a replaced optimizer or callback, and use a Keras that is known to work (3.10 or later).
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """

    def judge(case: SmokeCase) -> Outcome:
        return counted(run, case, target, packages) or equals_one_device(
            run, case, target, packages, tolerance=tolerance
        )

    yield from each_case(run, ("adam", "momentum"), judge)
