"""Whether the sizes of the final batch that do harm are those of the rule."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import did_not_finish, name_of
from kdoctor_checks.smoke._strategies import change_code, each_case

_HAZARD = "normalised"


@check(
    "smoke.final-batch-sweep",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.final-batch-sweep",
)
def final_batch_sweep(run: SmokeRun) -> Iterator[Outcome]:
    """No final batch ruins the weights, but one that starves a replica of a model with plain BatchNormalization.

    Why: a batch of n over R replicas starves one when (R - 1) * ceil(n / R) >= n. By that rule people choose batch
    sizes, so it has to hold for every size; and a model without normalisation, or with a synchronised one, has to
    survive every size.
    Remedy: drop the remainder, and do not rely on the rule with this Keras.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome != "trained":
            return did_not_finish(run, case)
        tails = {
            int(name.removeprefix("tail ")): count for name, count in case.measures.items() if name.startswith("tail ")
        }
        if not tails or not case.replicas:
            return Unjudged(subject=name_of(case), reason="no size was tried")
        ruined = sorted(tail for tail, count in tails.items() if count != 0)
        starved = sorted(tail for tail in tails if starves(tail, case.replicas))
        against = [tail for tail in ruined if case.name != _HAZARD or tail not in starved]
        sizes = f"{len(tails)} sizes over {case.replicas} replicas; starved at {starved}, ruined at {ruined}"
        if against:
            advice = "Drop the remainder, or do not train over several replicas with this Keras."
            return change_code(case, f"{sizes}: NaN where the rule says none", "finite weights", advice)
        return Evidence(subject=name_of(case), observed=sizes)

    yield from each_case(run, ("plain", "normalised", "synchronized"), judge)


def starves(tail: int, replicas: int) -> bool:
    """Whether a batch of that many examples leaves the last replica without one."""
    return (replicas - 1) * -(-tail // replicas) >= tail
