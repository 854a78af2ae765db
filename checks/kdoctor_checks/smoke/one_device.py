from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases


@check(
    "smoke.one-device", severity=Severity.ERROR, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.one-device"
)
def one_device(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """OneDeviceStrategy matches training without a strategy.

    Why: OneDeviceStrategy is how a distributed job is tested on one device. If fit or a custom loop differs from
    training without a strategy, the fault is in the strategy itself and not in the exchange between devices.
    Remedy: install compatible versions of TensorFlow and Keras.
    Source: https://www.tensorflow.org/api_docs/python/tf/distribute/OneDeviceStrategy
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)
    yield from judge_cases(run, ("fit", "custom-loop"), compare.judge, replicated=False)
