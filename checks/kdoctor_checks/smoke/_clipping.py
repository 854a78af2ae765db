"""Judges trainings that clip gradients."""

from dataclasses import replace

from kdoctor.defects import defect
from kdoctor.facts import SmokeCase
from kdoctor.model import Finding, Outcome
from kdoctor_checks.smoke._judging import NO_ROLLBACK, Comparison, finding, unknown
from kdoctor_checks.smoke._values import remedy_of

_DEFECT = defect("smoke.clipping")
_REMEDY = remedy_of(_DEFECT)


def judge_clipping(compare: Comparison, case: SmokeCase, *explained_by: str) -> Outcome:
    """Evidence if every step is clipped, and weights and losses are those of one device."""
    way, longest = case.measures.get("reference_way"), case.measures.get("longest_way")
    if way is None or longest is None:
        return unknown(case, "how far clipped steps moved the weights was not measured")
    # A step of SGD with learning rate r moves a variable by at most r times the limit of its gradient's norm.
    if way > longest * (1 + compare.tolerance):
        observed = f"a variable moved by {way:.3g} on one device, clipped steps allow {longest:.3g}"
        return finding(case, observed, "every step is clipped", _REMEDY, brief="gradients are not clipped")
    outcome = compare.judge(case)
    if not isinstance(outcome, Finding):
        return outcome
    return replace(
        outcome,
        remedy=_REMEDY,
        rollback=NO_ROLLBACK,
        brief=_DEFECT.brief,
        explained_by=(*outcome.explained_by, *explained_by),
    )
