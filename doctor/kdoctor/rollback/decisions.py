"""What to do about what was decided: the steps of each decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kdoctor.engine.report import DecidedStep, Decision, Result
from kdoctor.rollback.model import RollbackPlan


def with_steps(
    decisions: Iterable[Decision], results: Iterable[Result], plan: RollbackPlan | None
) -> tuple[Decision, ...]:
    """The decisions with their steps.

    Rolling back takes the plan's steps, and fixing forward the remedies of the findings. An investigation starts with
    the explanation of the check. ``plan`` is None if no lock is on record.
    """
    by_id = {result.id: result for result in results}
    return tuple(
        replace(decision, steps=tuple(_steps(decision, [by_id[check] for check in decision.checks], plan)))
        for decision in decisions
    )


def _steps(decision: Decision, results: list[Result], plan: RollbackPlan | None) -> Iterator[DecidedStep]:
    if decision.action == "roll back at once":
        yield from _back(results, plan)
    elif decision.action == "fix forward":
        yield from _remedies(results)
    else:
        for result in results:
            yield DecidedStep(summary=f"Read what {result.id} is about.", commands=(f"kdoctor explain {result.id}",))


def _back(results: list[Result], plan: RollbackPlan | None) -> Iterator[DecidedStep]:
    if plan is None:
        yield DecidedStep(
            summary="No green run is on record (kdoctor checklist record), and none is in the history, so the recorded "
            "state is not known; what the findings themselves say:"
        )
        yield from _remedies(results)
        return
    if plan.is_empty:
        yield DecidedStep(
            summary=f"Nothing that was recorded in {plan.lock} has drifted, so rolling back would change nothing: "
            "fix it by the findings."
        )
        yield from _remedies(results)
        return
    for step in plan.steps:
        marks = [word for word, holds in (("root", step.needs_root), ("a reboot", step.needs_reboot)) if holds]
        needs = f" (needs {' and '.join(marks)})" if marks else ""
        needs += f" ({step.elsewhere})" if step.elsewhere else ""
        yield DecidedStep(summary=step.title + needs, commands=step.commands)
    for text in plan.by_hand:
        yield DecidedStep(summary=f"By hand: {text}.")
    yield DecidedStep(summary="Examine the machine again.", commands=(plan.again,))


def _remedies(results: list[Result]) -> Iterator[DecidedStep]:
    seen = set()
    for result in results:
        for judged in result.findings:
            remedy = judged.finding.remedy
            if judged.counts and remedy not in seen:
                seen.add(remedy)
                yield DecidedStep(summary=remedy.summary, commands=remedy.commands)
