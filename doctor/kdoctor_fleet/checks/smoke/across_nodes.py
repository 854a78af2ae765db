from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._judging import Comparison, finding, unknown
from kdoctor_checks.smoke._trained import trained
from kdoctor_fleet.checks.smoke._across import all_joined
from kdoctor_fleet.scenarios import KERAS


@trained("smoke.across-nodes", cases=KERAS.cases, replicated=False)
def across_nodes(compare: Comparison, case: SmokeCase) -> Outcome:
    """The workers of TF_CONFIG train together and match one device.

    Why: MultiWorkerMirroredStrategy is how a job spans nodes. A custom loop over real nodes shows that they reach each
    other, that gradients are exchanged exactly, and how fast. Runs only if it is requested, on all nodes at once.
    Remedy: find the worker that raised, crashed or waited. Check name resolution, firewalls and the network between
    the nodes.
    Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_ctl
    """
    outcome = all_joined(case, compare.judge(case))
    wrong = case.measures.get("wrong values")
    if case.outcome != "trained" or wrong == 0:
        return outcome
    if wrong is None:
        return unknown(case, "no message was all-reduced")
    observed = f"{wrong:.0f} values of an all-reduced message are wrong"
    return finding(
        case,
        observed,
        "the all-reduce is exact",
        "Test the network and the memory of the nodes.",
        brief="the all-reduce is wrong",
    )
