"""What becomes of the others when a worker is lost."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import did_not_finish, name_of, place, where_it_waits
from kdoctor_checks.smoke._strategies import change_code, each_case


@check(
    "smoke.lost-worker",
    severity=Severity.WARNING,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.lost-worker",
)
def lost_worker(run: SmokeRun) -> Iterator[Outcome]:
    """When a worker dies or never comes, the others end with an error soon.

    Why: collectives wait for everybody. TensorFlow 2.21 notices a dead worker after some ten seconds, but waits for
    one that never came for as long as its cluster's start may take, in silence. Machines are paid for while they wait.
    Remedy: start all workers under something that ends all when one is lost (srun --kill-on-bad-exit, a Job with
    restart policy), and put a deadline on the start.
    Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome != "trained":
            return did_not_finish(run, case)
        if not case.workers or "patience_s" not in case.measures:
            return Unjudged(subject=name_of(case), reason="the workers were not watched")
        first, waited = case.workers[0], case.measures.get("others_s")
        if first.outcome == "timed-out" or waited is None:
            patience = case.measures["patience_s"] or 0
            waits = f"{first.name} waits {place(first.phase)}{where_it_waits(case)} and says nothing"
            observed = f"{waits}; kdoctor ended it after {patience:.0f} s"
            advice = (
                "Start the workers under something that ends all of them when one is missing "
                "(srun --kill-on-bad-exit=1, a Kubernetes Job), with a deadline for the start."
            )
            return change_code(case, observed, "an error within seconds", advice)
        if first.outcome == "trained":
            advice = "Do not trust collectives that go on with a part of the workers."
            return change_code(case, f"{first.name} trained on alone", "an error", advice)
        error = first.error_type or first.signal or "an exit"
        return Evidence(subject=name_of(case), observed=f"{first.name} ended with {error} after {waited:.0f} s")

    yield from each_case(run, ("dies", "never-comes"), judge, spread=False)
