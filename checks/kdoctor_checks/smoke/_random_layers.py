"""Judges what random layers draw on each replica."""

from kdoctor.defects import defect
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Remedy
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._frameworks import keras_of
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_checks.smoke._values import remedy_of

DEFECT = defect("smoke.random-layers")
REMEDY = remedy_of(DEFECT)
"""The script also has a Dropout layer that does so."""


def judge_masks(run: SmokeRun, case: SmokeCase, remedy: Remedy | str, explained_by: tuple[str, ...] = ()) -> Outcome:
    """Evidence if the replicas drew different numbers, and the same again with the same seed."""
    masks, equal = case.measures.get("masks"), case.measures.get("equal_masks")
    if not masks or equal is None:
        return unknown(case, "its masks were not compared")
    observed = f"equal masks on {counted(case.replicas, 'device' if run.jax else 'replica')}"
    observed += f" in {equal:.0f} of {masks:.0f} steps"
    if equal:
        return finding(
            case,
            f"{observed} ({keras_of(run)})",
            "a different mask on each replica",
            remedy,
            brief=DEFECT.brief,
            explained_by=explained_by,
        )
    repeated = case.measures.get("repeated_masks", masks)  # not measured for the alternative in Dataset.map
    if repeated != masks:
        observed = f"with the same seed, {repeated or 0:.0f} of {masks:.0f} steps drew the same again"
        brief = "a seed does not reproduce the random numbers"
        return finding(case, observed, "the same masks with the same seed", remedy, brief=brief)
    return evidence(case, observed)
