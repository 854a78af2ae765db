"""Whether gradients can be accumulated over several replicas."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._cases import TOLERANCE, how_it_ended
from kdoctor_checks.smoke._state import counted
from kdoctor_checks.smoke._strategies import change_code, each_case, equals_one_device


@check(
    "smoke.gradient-accumulation",
    severity=Severity.WARNING,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.state",
)
def gradient_accumulation(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """An optimizer that accumulates gradients trains over all replicas as on one device.

    Why: gradient_accumulation_steps makes one update of several small steps, for models that fill the memory. Keras
    3.15.1 on TensorFlow raises a RuntimeError about merge_call when there is more than one replica. Only a job that
    asks for it is concerned: hence a warning. Keras 2 has no such option, and nothing is tried.
    Remedy: use larger batches and more replicas instead, or accumulate in a custom training loop.
    Source: https://keras.io/api/optimizers/
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome == "raised":
            return change_code(
                case,
                f"{run.keras or 'this Keras'} cannot accumulate gradients over replicas: {how_it_ended(case)}",
                "it trains",
                "Leave gradient_accumulation_steps out over several replicas, or accumulate in a custom training loop.",
            )
        return counted(run, case, target, packages) or equals_one_device(
            run, case, target, packages, tolerance=tolerance
        )

    yield from each_case(run, ("accumulation",), judge)
