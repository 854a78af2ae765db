"""Judges trainings that compare an optimizer's variables, too."""

from dataclasses import replace

from kdoctor.facts import SmokeCase
from kdoctor.model import Evidence, Outcome
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import Comparison, Problem, unknown

_LEAST_MOVES = 100
"""Weights must move by this multiple of the tolerance, or an optimizer that does nothing would pass."""

MOVED_LITTLE = "one device's weights moved too little to compare them"


def has_moved(compare: Comparison, case: SmokeCase) -> bool:
    """Whether the weights of one device moved far enough to compare them."""
    return (case.measures.get("moved") or 0.0) >= _LEAST_MOVES * compare.tolerance


def judge_optimizer(compare: Comparison, case: SmokeCase) -> Outcome:
    """Evidence if the weights moved, and weights, losses and the optimizer's variables are those of one device."""
    outcome = compare.judge(case)
    if not isinstance(outcome, Evidence):
        return outcome
    names = ("moved", "state", "mirrored_state", "state_deviation")
    state, mirrored, deviation = (case.measures.get(name) for name in names[1:])
    if state is None or mirrored is None or not {*names} <= case.measures.keys():
        return unknown(case, "the optimizer's variables were not compared with one device")
    if not has_moved(compare, case):
        return unknown(case, MOVED_LITTLE)
    if mirrored < state:
        observed = f"only {mirrored:.0f} of {counted(round(state), 'optimizer variable')} are equal on every replica"
        return compare.wrong(case, Problem(observed, "the replicas hold different optimizer variables"))
    if deviation is None or deviation > compare.tolerance:
        size = "are not finite" if deviation is None else f"differ by up to {deviation:.2g} of their size"
        observed = f"the optimizer's variables {size}, the tolerance is {compare.tolerance:g}"
        return compare.wrong(case, Problem(observed, "optimizer variables differ from one device's"))
    return replace(outcome, observed=f"{outcome.observed}; {counted(round(state), 'optimizer variable')} equal")
