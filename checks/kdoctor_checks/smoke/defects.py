"""The checks of the known defects of Keras, which are data: see ``kdoctor.defects``."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from kdoctor.check import Check, CheckText
from kdoctor.defects import Comparison as Compared
from kdoctor.defects import Defect, load_defects
from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._cases import describe_end, in_phase
from kdoctor_checks.smoke._clipping import judge_clipping
from kdoctor_checks.smoke._frameworks import keras_of, this_keras
from kdoctor_checks.smoke._judging import (
    NONFINITE_LOSS,
    TOLERANCE,
    Comparison,
    brief_end,
    did_not_finish,
    evidence,
    finding,
    summarize,
    unknown,
    weights_problem,
)
from kdoctor_checks.smoke._optimizers import judge_optimizer
from kdoctor_checks.smoke._random_layers import judge_masks
from kdoctor_checks.smoke._trained import cases_of, trained
from kdoctor_checks.smoke._values import count_predictions, judge_reported, remedy_of, with_remedy

_Judge: TypeAlias = Callable[[Defect, Comparison, SmokeCase], Outcome]


def _check(defect: Defect) -> Check:
    def judge(compare: Comparison, case: SmokeCase) -> Outcome:
        if case.name in defect.alternatives:
            return compare.judge(case)
        if _is_raised(defect, case):
            return _raised(defect, compare, case)
        if case.outcome != "trained":
            return did_not_finish(compare.run, case)
        return _JUDGES[defect.compare](defect, compare, case)

    text = CheckText(
        title=defect.title,
        why=defect.why,
        remedy=defect.remedy,
        sources=tuple(defect.source),
        failure_modes=(defect.failure,),
    )
    cases = (*(defect.cases or cases_of(defect.check)), *defect.alternatives)
    make = trained(
        defect.check,
        text=text,
        severity=Severity.WARNING,
        scenario=defect.scenario,
        cases=cases,
        tolerance=None if defect.compare in _WITHOUT_TOLERANCE else TOLERANCE,
        finished=False,
    )
    return make(judge)


def _is_raised(defect: Defect, case: SmokeCase) -> bool:
    """Whether the case ended with the error of the defect."""
    is_type = bool(defect.raises) and defect.raises in ("*", case.error_type)
    return case.outcome == "raised" and is_type and defect.message in (case.error_message or "")


def _raised(defect: Defect, compare: Comparison, case: SmokeCase) -> Outcome:
    """A case that ended with the error of the defect."""
    observed = defect.observed.format(
        error=case.error_type,
        phase=in_phase(case.phase),
        keras=keras_of(compare.run),
        this_keras=this_keras(compare.run),
        end=describe_end(case),
        batch=_first_batch(case),
    )
    brief, because = defect.brief or brief_end(case), tuple(defect.explained_by)
    return finding(case, observed, defect.expected, remedy_of(defect), brief=brief, explained_by=because)


def _first_batch(case: SmokeCase) -> str:
    return f"first batch of {case.final_batch} over {counted(case.replicas, 'replica')}"


def _deviates(defect: Defect, outcome: Outcome) -> Outcome:
    """An outcome whose finding has the remedy of the defect, if the defect is a wrong result."""
    return outcome if defect.raises and not defect.deviates else with_remedy(outcome, remedy_of(defect), defect.brief)


def _predictions(defect: Defect, compare: Comparison, case: SmokeCase) -> Outcome:
    """One prediction for each example, in order."""
    counts = count_predictions(case)
    if counts is None:
        return unknown(case, "its predictions were not counted")
    examples, predictions, in_order = counts
    observed = f"{predictions} predictions for {examples} examples"
    if predictions == in_order == examples:
        return evidence(case, observed)
    observed = f"{observed}, {in_order} at their place ({keras_of(compare.run)})"
    expected = "one prediction for each example, in order"
    return finding(case, observed, expected, remedy_of(defect), brief=defect.brief)


def _finite(defect: Defect, compare: Comparison, case: SmokeCase) -> Outcome:
    """Finite weights on every replica."""
    batch = _first_batch(case)
    if case.weights is None or not case.losses:
        return unknown(case, "its weights or its losses were not read")
    problem = weights_problem(case.weights) or (NONFINITE_LOSS if None in case.losses else None)
    if problem:
        observed, expected = f"{problem.observed} ({batch})", "finite weights on every replica"
        return finding(case, observed, expected, remedy_of(defect), brief=problem.brief)
    return evidence(case, f"{batch}; {summarize(compare.run, case)}")


_JUDGES: Mapping[Compared, _Judge] = {
    "weights": lambda defect, compare, case: _deviates(defect, compare.judge(case)),
    "counted": lambda _, compare, case: compare.count_problem(case) or compare.judge(case),
    "optimizer": lambda defect, compare, case: _deviates(defect, judge_optimizer(compare, case)),
    "clipping": lambda defect, compare, case: judge_clipping(compare, case, *defect.explained_by),
    "values": lambda defect, compare, case: _deviates(defect, judge_reported(compare, case)),
    "predictions": _predictions,
    "masks": lambda defect, compare, case: judge_masks(
        compare.run, case, remedy_of(defect), tuple(defect.explained_by)
    ),
    "finite": _finite,
}
_WITHOUT_TOLERANCE = ("predictions", "masks", "finite")

CHECKS = tuple(map(_check, load_defects().values()))
