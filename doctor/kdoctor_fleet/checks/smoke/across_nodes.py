from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, finding, judge_cases, unknown
from kdoctor_fleet.checks.smoke._across import all_joined


@check(
    "smoke.across-nodes",
    severity=Severity.ERROR,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.across-nodes",
)
def across_nodes(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """The workers of TF_CONFIG train together and match one device.

    Why: MultiWorkerMirroredStrategy is how a job spans nodes. A custom loop over real nodes shows that they reach each
    other, that gradients are exchanged exactly, and how fast. Runs only if it is requested, on all nodes at once.
    Remedy: find the worker that raised, crashed or waited. Check name resolution, firewalls and the network between
    the nodes.
    Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_ctl
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
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

    yield from judge_cases(run, ("custom-loop",), judge, replicated=False)
