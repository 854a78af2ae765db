from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import Comparison, bit_equal
from kdoctor_checks.smoke._trained import trained
from kdoctor_checks.smoke._workers import judge_workers


@trained("smoke.multi-worker", replicated=False)
def multi_worker(compare: Comparison, case: SmokeCase) -> Outcome:
    """Several worker processes train together and match one device.

    Why: MultiWorkerMirroredStrategy is how a job spans machines. Real processes that connect over 127.0.0.1 show that
    its collectives work in this environment with a custom training loop, and that the chief saves what every worker
    holds. The network between machines is not tested.
    Remedy: find the worker that raised, crashed or waited. Check for a firewall on the loopback interface, a proxy, or
    a TensorFlow with broken collectives.
    Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_ctl
    """
    if case.name == "chief-saves":
        return _judge_saved(case)
    return judge_workers(compare, case, compare.judge(case))


def _judge_saved(case: SmokeCase) -> Outcome:
    return bit_equal(
        case,
        "equal to",
        expected="the chief saves the weights that every worker holds",
        remedy="Compare the weights of all workers before saving and after loading.",
        describe=lambda workers, equal: f"saved by {counted(len(workers), 'worker')}, loaded on one device: {equal}",
    )
