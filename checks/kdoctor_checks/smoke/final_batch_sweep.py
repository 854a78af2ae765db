from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import evidence, finding, starves, unknown
from kdoctor_checks.smoke._trained import trained


@trained("smoke.final-batch-sweep")
def final_batch_sweep(case: SmokeCase) -> Outcome:
    """Weights stay finite for every final batch that feeds all replicas.

    Why: a batch of n over R replicas leaves one empty if (R - 1) * ceil(n / R) >= n. Users choose batch sizes by that
    rule, so it must hold for every size. A model without normalization, or with synchronized normalization, must
    survive every size.
    Remedy: drop the remainder, and do not rely on the rule with this Keras.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
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
