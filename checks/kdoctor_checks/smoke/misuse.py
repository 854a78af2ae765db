"""Whether mistakes are refused."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity
from kdoctor_checks.smoke._cases import did_not_finish, name_of, place, refused
from kdoctor_checks.smoke._strategies import change_code, each_case


@check("smoke.misuse", severity=Severity.ERROR, requires=["versions.tensorflow-installed"], scenario="smoke.misuse")
def misuse(
    run: SmokeRun,
    *,
    refusals: tuple[str, ...] = (
        "AssertionError",
        "InvalidArgumentError",
        "NotImplementedError",
        "RuntimeError",
        "UnimplementedError",
        "ValueError",
    ),
) -> Iterator[Outcome]:
    """XLA over several replicas and a model between two strategies are refused, or work.

    Why: jit_compile=True cannot compile the exchange between replicas, and a model belongs to the strategy that it was
    made in. Both have to end with an error. A failure path that does not fail is a failure, unless the training is
    then what it should be: replicated and agreed.
    Remedy: leave jit_compile out under a strategy (auto turns it off), and make one strategy for the whole program.
    Source: https://www.tensorflow.org/guide/distributed_training
    Failure modes: jit_compile_true_multi
    """

    def judge(case: SmokeCase) -> Outcome:
        if refused(case, refusals):
            return Evidence(subject=name_of(case), observed=f"refused with {case.error_type} {place(case.phase)}")
        if case.outcome != "trained":
            return did_not_finish(run, case)
        weights = case.weights
        held = (
            f"{weights.mirrored} of {weights.variables} variables are mirrored"
            if weights
            else "its weights are unknown"
        )
        advice = "Leave jit_compile out under a strategy, and make one strategy for the whole program."
        return change_code(case, f"it trains without an error: {held}", "an error", advice)

    yield from each_case(run, ("jit-compile", "two-strategies"), judge)
