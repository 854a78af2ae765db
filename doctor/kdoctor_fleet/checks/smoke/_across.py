"""Judges one worker of a training over several nodes."""

from dataclasses import replace

from kdoctor.facts import SmokeCase
from kdoctor.model import Evidence, Outcome
from kdoctor_checks.smoke._judging import unknown

_FEWEST = 2


def all_joined(case: SmokeCase, outcome: Outcome) -> Outcome:
    """The outcome of a worker; evidence only if every worker of TF_CONFIG took part."""
    if not isinstance(outcome, Evidence):
        return outcome
    workers, index = case.measures.get("workers"), case.measures.get("worker")
    if workers is None or index is None or case.replicas is None or case.replicas < max(workers, _FEWEST):
        return unknown(case, "fewer workers trained together than TF_CONFIG names")
    return replace(outcome, observed=f"worker {index:.0f} of {workers:.0f}: {outcome.observed}")
