"""What the checks of the wider smoke scenarios have in common: every case in turn, and equality with one device."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable, Weights
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks.smoke._cases import (
    MEASURE_ONLY,
    did_not_finish,
    how_it_ended,
    missing,
    name_of,
    no_real_spread,
    show,
    spread_over,
    wrong_arithmetic,
)

LOSS_TOLERANCE = 1e-3
"""Largest relative difference of a loss that counts as equal."""

Judge = Callable[[SmokeCase], "Outcome | Iterable[Outcome]"]


def each_case(run: SmokeRun, names: Iterable[str], judge: Judge, *, spread: bool = True) -> Iterator[Outcome]:
    """What the judge says of each case that came to its end in some way.

    Args:
        run: the scenario's run.
        names: the cases, in order.
        judge: takes a case that was not skipped.
        spread: whether a case says nothing unless it trains over several replicas, all that were asked for.
    """
    for name in names:
        case = run.case(name)
        if case is None:
            yield missing(run, name)
        elif case.outcome == "skipped":
            yield NotApplicable(reason=f"{name_of(case)}: {case.skip_reason}")
        else:
            said = (no_real_spread(run, case) if spread and case.replicas is not None else None) or judge(case)
            yield from said if isinstance(said, Iterable) else (said,)


def equals_one_device(
    run: SmokeRun,
    case: SmokeCase,
    target: Target | Unavailable,
    packages: Packages | Unavailable,
    *,
    tolerance: float,
    loss_tolerance: float = LOSS_TOLERANCE,
    mirrored: bool = True,
) -> Outcome:
    """A finding unless the case trained, every variable on every replica, to one device's weights and losses."""
    if case.outcome != "trained":
        return did_not_finish(run, case)
    if case.weights is None or not case.losses:
        return Unjudged(subject=name_of(case), reason="its weights or its losses were not read")
    problem = weights_problem(case.weights, mirrored=mirrored)
    if problem is None and case.weight_deviation is None:
        return Unjudged(subject=name_of(case), reason="its weights were not compared with one device")
    if problem is None and case.weight_deviation is not None and case.weight_deviation > tolerance:
        problem = f"weights differ by up to {case.weight_deviation:.2g} (tolerance {tolerance:g})"
    if problem is None and len(case.reference_losses) != len(case.losses):
        return Unjudged(subject=name_of(case), reason="its losses were not compared with one device")
    if problem is None and not same_losses(case, loss_tolerance):
        problem = f"it reports losses of {show(case.losses)}, on one device {show(case.reference_losses)}"
    if problem:
        return wrong_arithmetic(run, case, problem, target, packages)
    return Evidence(subject=name_of(case), observed=in_short(run, case))


def weights_problem(weights: Weights, *, mirrored: bool = True) -> str | None:
    """What is wrong with the variables themselves."""
    if weights.variables == 0:
        return "the model has no trainable variables"
    if mirrored and weights.mirrored < weights.variables:
        return f"{weights.mirrored} of {weights.variables} trainable variables are mirrored on every replica"
    if weights.nonfinite:
        return f"NaN or infinity in {some(weights.nonfinite)}"
    if weights.replicas_agree is False:
        return "the replicas hold different weights after the same steps"
    return None


def same_losses(case: SmokeCase, tolerance: float) -> bool:
    """Whether the losses are those of one device."""
    return all(
        one is not None and other is not None and math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance / 10)
        for one, other in zip(case.losses, case.reference_losses, strict=True)
    )


def falls(case: SmokeCase) -> bool:
    """Whether the loss is finite and falls from the first epoch to the last."""
    first, last = (case.losses[0], case.losses[-1]) if len(case.losses) > 1 else (None, None)
    return None not in case.losses and first is not None and last is not None and last < first


def in_short(run: SmokeRun, case: SmokeCase) -> str:
    """A good training in one line."""
    deviation = (
        f"; weights within {case.weight_deviation:.2g} of one device" if case.weight_deviation is not None else ""
    )
    step = f"; step {case.step_s:.3g} s" if case.step_s is not None else ""
    return (
        f"{case.strategy or 'strategy unknown'}, {spread_over(run, case)} ({run.devices_kind}), "
        f"losses {show(case.losses)}{deviation}{step}"
    )


def unsupported(run: SmokeRun, case: SmokeCase, strategy: str, way_out: str) -> Finding:
    """``Model.fit`` does not work under a strategy."""
    observed = f"cannot fit under {strategy}: {how_it_ended(case)}"
    if case.outcome == "trained":
        observed = f"trains under {strategy}, but not rightly: it reports losses of {show(case.losses)}"
        observed += f", one device {show(case.reference_losses)}" if case.reference_losses else ""
        observed += (
            f"; weights differ by up to {case.weight_deviation:.2g}" if case.weight_deviation is not None else ""
        )
    return Finding(
        subject=name_of(case),
        observed=f"{run.keras or 'this Keras'} {observed}",
        expected=f"Model.fit trains under {strategy}",
        remedy=Remedy(summary=way_out, action=Action.CHANGE_CODE),
        rollback=MEASURE_ONLY,
    )


def change_code(case: SmokeCase, observed: str, expected: str, advice: str) -> Finding:
    """A finding whose way out is in the job's code."""
    return Finding(
        subject=name_of(case),
        observed=observed,
        expected=expected,
        remedy=Remedy(summary=advice, action=Action.CHANGE_CODE),
        rollback=MEASURE_ONLY,
    )


def bit_equal(
    case: SmokeCase, measures: str, *, expected: str, advice: str, words: Callable[[list[str], str], str]
) -> Outcome:
    """Whether all variables are bit by bit what was saved, in each of the places that were compared.

    Args:
        case: one that trained, saved and loaded.
        measures: what the names of the places' measures begin with, such as ``equal on``.
        expected: what should be, in words.
        advice: what to do if it is not.
        words: what is told where all is well, of the places' names and of how many variables are equal.
    """
    variables = case.measures.get("variables")
    equal = {name: count for name, count in case.measures.items() if name.startswith(f"{measures} ")}
    if not variables or not equal:
        return Unjudged(subject=name_of(case), reason="nothing was compared after loading")
    wrong = [
        f"{count or 0:.0f} of {variables:.0f} variables are {name}"
        for name, count in equal.items()
        if count != variables
    ]
    if wrong:
        return change_code(case, "; ".join(wrong), expected, advice)
    places = [name.removeprefix(f"{measures} ") for name in equal]
    return Evidence(subject=name_of(case), observed=words(places, f"all {variables:.0f} variables bit-equal"))
