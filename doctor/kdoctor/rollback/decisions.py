"""The failure policy's decisions, and the steps that carry them out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kdoctor.engine.judge import FactTable
from kdoctor.engine.report import DecidedStep, Decision, Report, Result
from kdoctor.lock.document import Lock
from kdoctor.lock.drift import drift
from kdoctor.lock.facts import recorded_facts
from kdoctor.rollback.document import RollbackPlan
from kdoctor.rollback.installers import read_installation
from kdoctor.rollback.plan import plan_rollback


def since_last_passing(report: Report, facts: FactTable, lock: Lock | None, shown: str, checklist: str) -> Report:
    """The report with the drift since the lock was recorded, and with the steps of its decisions.

    Args:
        report: the judged report.
        facts: what it was judged on.
        lock: the last passing run; None if none was recorded.
        shown: the lock's file.
        checklist: the checklist's name or path, for the command that checks again.
    """
    if lock is None:
        return _with_steps(report, None)
    now = recorded_facts(facts, identifiers=lock.identifiers)
    drifted = replace(report, drift=drift(lock, now, report.results, shown))
    if not drifted.decisions:
        return drifted
    return _with_steps(drifted, plan_rollback(lock, now, read_installation(facts), shown, checklist))


since_last_green = since_last_passing


def _with_steps(report: Report, plan: RollbackPlan | None) -> Report:
    """The report with the steps of its decisions. ``plan`` is None if no lock was recorded."""
    by_id = {result.id: result for result in report.results}
    decisions = tuple(
        replace(decision, steps=tuple(_steps(decision, [by_id[check] for check in decision.checks], plan)))
        for decision in report.decisions
    )
    return replace(report, decisions=decisions)


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
