"""Whether two trainings from one seed are one training."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import did_not_finish, name_of
from kdoctor_checks.smoke._strategies import change_code, each_case


@check(
    "smoke.determinism",
    severity=Severity.WARNING,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.determinism",
)
def determinism(run: SmokeRun, *, tolerance: float = 0.0) -> Iterator[Outcome]:
    """Two trainings from one seed end with the same weights.

    Why: a run that cannot be repeated cannot be debugged. With a seed alone some GPU kernels add up in an order of
    their own; enable_op_determinism makes TensorFlow choose others or refuse, and costs time, which is in the
    evidence.
    Remedy: call keras.utils.set_random_seed, and tf.config.experimental.enable_op_determinism where that is not
    enough.
    Source: https://www.tensorflow.org/api_docs/python/tf/config/experimental/enable_op_determinism
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome != "trained":
            return did_not_finish(run, case)
        difference = case.measures.get("difference")
        if "difference" not in case.measures:
            return Unjudged(subject=name_of(case), reason="the two trainings were not compared")
        if difference is None or difference > tolerance:
            how_far = "not finite" if difference is None else f"up to {difference:.2g}"
            advice = "Call tf.config.experimental.enable_op_determinism() after the seed, or accept the difference."
            return change_code(case, f"weights of two trainings differ: {how_far}", "the same weights", advice)
        step = f", step {case.step_s:.3g} s" if case.step_s is not None else ""
        return Evidence(subject=name_of(case), observed=f"weights differ by {difference:g}{step}")

    yield from each_case(run, ("seed", "op-determinism"), judge, spread=False)
