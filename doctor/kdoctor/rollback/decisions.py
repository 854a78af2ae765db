"""What to do about what was decided: the steps of each decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kdoctor.engine.judge import FactTable
from kdoctor.engine.report import DecidedStep, Decision, Report, Result
from kdoctor.lock.document import Lock
from kdoctor.lock.drift import drift
from kdoctor.lock.facts import recorded_facts
from kdoctor.rollback.installers import how_made
from kdoctor.rollback.model import RollbackPlan
from kdoctor.rollback.plan import plan_rollback


def since_last_green(report: Report, facts: FactTable, lock: Lock | None, shown: str, checklist: str) -> Report:
    """The report with what drifted since the lock was recorded, and with the steps of what was decided.

    Args:
        report: what was judged.
        facts: what it was judged on.
        lock: the last green run; None if there is none on record.
        shown: the lock's file.
        checklist: the checklist's name or path, to examine again by.
    """
    if lock is None:
        return with_steps(report, None)
    now = recorded_facts(facts, identifiers=lock.identifiers)
    drifted = replace(report, drift=drift(lock, now, report.results, shown))
    if not drifted.decisions:
        return drifted
    return with_steps(drifted, plan_rollback(lock, now, how_made(facts), shown, checklist))


def with_steps(report: Report, plan: RollbackPlan | None) -> Report:
    """The report, its decisions with their steps.

    Rolling back takes the plan's steps, fixing forward the findings' remedies; looking into it starts with what the
    check is about. ``plan`` is None where no lock is on record.
    """
    by_id = {result.id: result for result in report.results}
    decisions = tuple(
        replace(decision, steps=tuple(_steps(decision, [by_id[check] for check in decision.checks], plan)))
        for decision in report.decisions
    )
    return replace(report, decisions=decisions)


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
