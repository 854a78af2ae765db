"""Judges values that a training reports: metrics, learning rates, the best epoch."""

import math
from collections.abc import Iterator
from dataclasses import replace

from kdoctor.defects import Defect
from kdoctor.facts import SmokeCase
from kdoctor.model import Finding, Outcome, Remedy
from kdoctor.text.lists import some
from kdoctor_checks.smoke._judging import LOSS_TOLERANCE, NO_ROLLBACK, Comparison, Problem, evidence, unknown

_REPORTED, _EXPECTED = "metric ", "reference "


def judge_reported(compare: Comparison, case: SmokeCase) -> Outcome:
    """Whether the reported values are those that NumPy computes."""
    wrong = values_problem(case)
    if wrong:
        return replace(compare.wrong(case, wrong), expected="the value that NumPy computes")
    names = _names(case)
    return evidence(case, f"{', '.join(names)} match NumPy") if names else unknown(case, "its values were not compared")


def judge_trained(compare: Comparison, case: SmokeCase) -> Outcome:
    """Whether weights, losses and all reported values match one device."""
    outcome = compare.judge(case)
    wrong = None if isinstance(outcome, Finding) else values_problem(case)
    return compare.wrong(case, wrong) if wrong else outcome


def with_remedy(outcome: Outcome, remedy: Remedy, brief: str) -> Outcome:
    """A finding with the remedy for its cause, unless another Keras is the remedy."""
    if not isinstance(outcome, Finding) or outcome.remedy.commands:
        return outcome
    return replace(outcome, remedy=remedy, rollback=NO_ROLLBACK, brief=brief)


def remedy_of(defect: Defect) -> Remedy:
    """What a finding about the defect says to do."""
    return Remedy.change_code(defect.fix, look=defect.look)


def values_problem(case: SmokeCase) -> Problem | None:
    """The values that differ from the expected ones."""
    different = list(_different(case))
    if not different:
        return None
    observed = some([f"{name} is {_number(value)} instead of {_number(due)}" for name, value, due in different])
    return Problem(observed, "reported values are incorrect", "losses")


def _names(case: SmokeCase) -> list[str]:
    return [name.removeprefix(_REPORTED) for name in case.measures if name.startswith(_REPORTED)]


def _different(case: SmokeCase) -> Iterator[tuple[str, float | None, float | None]]:
    for name in _names(case):
        value, due = case.measures[f"{_REPORTED}{name}"], case.measures.get(f"{_EXPECTED}{name}")
        close = (
            value is not None
            and due is not None
            and math.isclose(value, due, rel_tol=LOSS_TOLERANCE, abs_tol=LOSS_TOLERANCE / 10)
        )
        if not close:
            yield name, value, due


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"


def count_predictions(case: SmokeCase) -> tuple[int, int, int] | None:
    """Examples, predictions, and predictions at the place of their example; None if they were not counted."""
    counts = [case.measures.get(name) for name in ("examples", "predictions", "in_order")]
    examples, predictions, in_order = (None if count is None else round(count) for count in counts)
    return None if examples is None or predictions is None or in_order is None else (examples, predictions, in_order)
