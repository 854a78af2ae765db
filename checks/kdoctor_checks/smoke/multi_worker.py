"""Whether several processes train together."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import TOLERANCE, did_not_finish, name_of, wrong_arithmetic
from kdoctor_checks.smoke._strategies import bit_equal, each_case, equals_one_device, in_short


@check(
    "smoke.multi-worker",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.multi-worker",
)
def multi_worker(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Several worker processes train together, and each ends with the weights of one device.

    Why: MultiWorkerMirroredStrategy is how a job spans machines. Real processes that meet over 127.0.0.1 show
    that its collectives work in this environment, with a custom training loop, and that what the first of them saves
    is what all of them hold. The network between machines is not tried.
    Remedy: see which worker raised, died or waited; a firewall on the loopback, a proxy, or a TensorFlow whose
    collectives are broken.
    Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_ctl
    """

    def judge(case: SmokeCase) -> Outcome:
        outcome = equals_one_device(run, case, target, packages, tolerance=tolerance)
        if not isinstance(outcome, Evidence):
            return outcome
        if len(case.workers) < 2 or case.replicas is None or case.replicas < len(case.workers):  # noqa: PLR2004
            return Unjudged(subject=name_of(case), reason="fewer than two workers trained together")
        for worker in case.workers:
            if worker.weight_deviation is None or worker.losses != case.losses:
                observed = f"{worker.name} did not report the losses or the weights of {case.workers[0].name}"
                return wrong_arithmetic(run, case, observed, target, packages)
            if worker.weight_deviation > tolerance:
                observed = f"the weights of {worker.name} differ by up to {worker.weight_deviation:.2g}"
                return wrong_arithmetic(run, case, observed, target, packages)
        return Evidence(subject=name_of(case), observed=f"{len(case.workers)} workers agree: {in_short(run, case)}")

    yield from each_case(run, ("custom-loop",), judge, spread=False)
    yield from each_case(run, ("chief-saves",), lambda case: _judge_saved(run, case), spread=False)


def _judge_saved(run: SmokeRun, case: SmokeCase) -> Outcome:
    if case.outcome != "trained":
        return did_not_finish(run, case)
    return bit_equal(
        case,
        "equal to",
        expected="what the first worker saved is what each of them held",
        advice="Compare the weights of all workers before you save, and after you load.",
        words=lambda workers, equal: f"saved by {len(workers)} workers, loaded on one device: {equal} to each",
    )
