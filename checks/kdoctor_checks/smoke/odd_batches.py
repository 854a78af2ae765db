from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import (
    Comparison,
    Problem,
    evidence,
    finding,
    loss_falls,
    summarize,
    unknown,
    weights_problem,
)
from kdoctor_checks.smoke._trained import trained

_NO_FALL = Problem("the loss does not fall", "the loss does not fall", "weights")


@trained("smoke.odd-batches", tolerance=None)
def odd_batches(compare: Comparison, case: SmokeCase) -> Outcome:
    """Datasets of unknown size train, and batches are split among the replicas.

    Why: generators have no known size, and their last batch is whatever remains. Every replica gets examples here, so
    it must train. Also, fit takes the global batch size: a batch meant for each replica is split among them, which
    makes BatchNormalization noisier and leaves devices idle. kdoctor counts the examples that arrive.
    Remedy: multiply the batch size by strategy.num_replicas_in_sync, and drop the remainder.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    if case.weights is None or not case.losses:
        return unknown(case, "its weights or its losses were not read")
    problem = weights_problem(case.weights) or (None if loss_falls(case) else _NO_FALL)
    if problem:
        return compare.wrong(case, problem)
    return _judge_shares(case) if case.name == "per-replica-batch" else evidence(case, summarize(compare.run, case))


def _judge_shares(case: SmokeCase) -> Outcome:
    first, total = case.measures.get("first_share"), case.measures.get("shares")
    if first is None or total is None or not case.global_batch or not case.replicas:
        return unknown(case, "the replicas' shares were not counted")
    due = -(-case.global_batch // case.replicas)
    observed = (
        f"batch of {case.global_batch} over {counted(case.replicas, 'replica')}: "
        f"{counted(round(first), 'example')} on the first, {total:.0f} in total"
    )
    if first != due or total != case.global_batch:
        remedy = "Look for a patched tf.data or strategy: this environment distributes data incorrectly."
        expected, brief = f"{due} on the first, {case.global_batch} in total", "batches are split incorrectly"
        return finding(case, observed, expected, remedy, brief=brief)
    return evidence(case, observed)
