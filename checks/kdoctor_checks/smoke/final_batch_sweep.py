from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, evidence, finding, judge_cases, starves, unknown
from kdoctor_checks.smoke._trained import cases_of


@check(
    "smoke.final-batch-sweep",
    severity=Severity.ERROR,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.final-batch-sweep",
)
def final_batch_sweep(run: SmokeRun) -> Iterator[Outcome]:
    """Weights stay finite for every final batch that feeds all replicas.

    Why: a batch of n over R replicas leaves one empty if (R - 1) * ceil(n / R) >= n. Users choose batch sizes by that
    rule, so it must hold for every size. A model without normalization, or with synchronized normalization, must
    survive every size.
    Remedy: drop the remainder, and do not rely on the rule with this Keras.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """

    def judge(case: SmokeCase) -> Outcome:
        tails = {
            int(name.removeprefix("tail ")): count for name, count in case.measures.items() if name.startswith("tail ")
        }
        if not tails or not case.replicas:
            return unknown(case, "no size was tried")
        ruined = sorted(tail for tail, count in tails.items() if count != 0)
        starved = sorted(tail for tail in tails if starves(tail, case.replicas))
        unexpected = [tail for tail in ruined if case.name != "normalised" or tail not in starved]
        tried = f"{counted(len(tails), 'size')} over {counted(case.replicas, 'replica')}"
        sizes = f"{tried}; a replica empty at {starved}, NaN at {ruined}"
        if unexpected:
            remedy = "Drop the remainder, or do not train on several replicas with this Keras."
            brief = "weights become NaN although every replica has examples"
            return finding(case, f"unexpected NaN at {unexpected}; {sizes}", "finite weights", remedy, brief=brief)
        return evidence(case, sizes)

    yield from judge_cases(run, cases_of("smoke.final-batch-sweep"), judge)
