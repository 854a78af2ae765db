from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import (
    TENSORFLOW,
    TOLERANCE,
    Comparison,
    bit_equal,
    judge_cases,
)
from kdoctor_checks.smoke._workers import judge_workers


@check(
    "smoke.multi-worker",
    severity=Severity.ERROR,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.multi-worker",
)
def multi_worker(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Several worker processes train together and match one device.

    Why: MultiWorkerMirroredStrategy is how a job spans machines. Real processes that connect over 127.0.0.1 show that
    its collectives work in this environment with a custom training loop, and that the chief saves what every worker
    holds. The network between machines is not tested.
    Remedy: find the worker that raised, crashed or waited. Check for a firewall on the loopback interface, a proxy, or
    a TensorFlow with broken collectives.
    Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_ctl
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        return judge_workers(compare, case, compare.judge(case))

    yield from judge_cases(run, ("custom-loop",), judge, replicated=False)
    yield from judge_cases(run, ("chief-saves",), _judge_saved, replicated=False)


def _judge_saved(case: SmokeCase) -> Outcome:
    return bit_equal(
        case,
        "equal to",
        expected="the chief saves the weights that every worker holds",
        remedy="Compare the weights of all workers before saving and after loading.",
        describe=lambda workers, equal: f"saved by {counted(len(workers), 'worker')}, loaded on one device: {equal}",
    )
