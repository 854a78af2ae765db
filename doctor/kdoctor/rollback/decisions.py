"""The failure policy's decisions, and the steps that carry them out."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kdoctor.engine.report import DecidedStep, Decision, Result
from kdoctor.rollback.document import RollbackPlan


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
        yield from _roll_back(results, plan)
    elif decision.action == "fix forward":
        yield from _remedies(results)
    else:
        for result in results:
            yield DecidedStep(summary=f"Read about {result.id}.", commands=(f"kdoctor explain {result.id}",))


def _roll_back(results: list[Result], plan: RollbackPlan | None) -> Iterator[DecidedStep]:
    if plan is None or plan.is_empty:
        reason = "No passing run has been recorded (kdoctor checklist record), so the known-good state is unknown."
        if plan:
            reason = f"Nothing has drifted from {plan.lock}, so a rollback would change nothing."
        yield DecidedStep(summary=f"{reason} Suggested fixes:")
        yield from _remedies(results)
        return
    for step in plan.steps:
        marks = [mark for mark, holds in (("root", step.needs_root), ("a reboot", step.needs_reboot)) if holds]
        needs = f" (needs {' and '.join(marks)})" if marks else ""
        needs += f" ({step.elsewhere})" if step.elsewhere else ""
        yield DecidedStep(summary=step.title + needs, commands=step.commands)
    for text in plan.by_hand:
        yield DecidedStep(summary=f"Manually: {text}.")
    yield DecidedStep(summary="Check the machine again.", commands=(plan.again,))


def _remedies(results: list[Result]) -> Iterator[DecidedStep]:
    seen = set()
    for result in results:
        for judged in result.findings:
            remedy = judged.finding.remedy
            if judged.counts and remedy not in seen:
                seen.add(remedy)
                yield DecidedStep(summary=remedy.summary, commands=remedy.commands)
