"""Judges trainings over several workers."""

from dataclasses import replace

from kdoctor.facts import SmokeCase
from kdoctor.model import Evidence, Outcome
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import Comparison, Problem, unknown, weights_differ


def judge_workers(compare: Comparison, case: SmokeCase, outcome: Outcome) -> Outcome:
    """The outcome of the first worker; evidence only if the others report the same losses and match one device, too."""
    if not isinstance(outcome, Evidence):
        return outcome
    if len(case.workers) < 2 or case.replicas is None or case.replicas < len(case.workers):  # noqa: PLR2004
        return unknown(case, "fewer than two workers trained together")
    for worker in case.workers:
        if worker.weight_deviation is None or worker.losses != case.losses:
            observed = f"losses or weights of {worker.name} are not those of {case.workers[0].name}"
            return compare.wrong(case, Problem(observed, "the workers hold different weights", "weights"))
        if worker.weight_deviation > compare.tolerance:
            problem = weights_differ(worker.weight_deviation, compare.tolerance)
            return compare.wrong(case, problem._replace(observed=f"on {worker.name}, {problem.observed}"))
    return replace(outcome, observed=f"{counted(len(case.workers), 'worker')} agree: {outcome.observed}")
