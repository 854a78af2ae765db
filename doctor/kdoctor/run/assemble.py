"""Builds the report of a run. Every command that reports calls :func:`build_report`."""

import os
import platform
from dataclasses import replace

from kdoctor.checklist.plan import scenarios_to_run
from kdoctor.checklist.policy import decisions
from kdoctor.commands.again import in_same_place
from kdoctor.commands.shell import quoted
from kdoctor.engine.categories import categories
from kdoctor.engine.causes import find_causes, relevant
from kdoctor.engine.fixes import plan_fixes
from kdoctor.engine.judge import judge, unused_waivers
from kdoctor.engine.report import Conclusion, Report, Result
from kdoctor.engine.verdict import conclude
from kdoctor.facts import FactGroup, Facts, Node, Target
from kdoctor.history.last_passing import Series, find_lock, find_start
from kdoctor.history.location import is_off
from kdoctor.lock.document import Lock
from kdoctor.lock.drift import drift
from kdoctor.lock.facts import recorded_facts
from kdoctor.records import record
from kdoctor.report.phrases import instant
from kdoctor.rollback.decisions import with_steps
from kdoctor.rollback.installers import Installation, read_installation
from kdoctor.rollback.plan import caution, plan_rollback
from kdoctor.run.log import warn
from kdoctor.run.measured import gpu_layout, gpu_work, trainings, visible_gpus
from kdoctor.run.node_facts import shared_facts
from kdoctor.run.plan import Plan
from kdoctor.run.session import Collected


def build_report(collected: Collected, plan: Plan, *, use_history: bool = False) -> Report:
    """Judge the facts, and compare them with the last passing run.

    Args:
        collected: the facts, and how they were collected.
        plan: what they are judged by.
        use_history: whether to look for the last passing run in this machine's history.
    """
    report = _judge(collected, plan)
    past = _last_passing(report, collected, plan, use_history=use_history and not is_off(os.environ))
    return replace(_compare(report, collected, plan, past), last_green_at=past.started_at)


def _judge(collected: Collected, plan: Plan) -> Report:
    """Everything about the run that follows from its facts."""
    facts = collected.facts
    results = tuple(_here(result, plan.command) for result in judge(plan.checks, facts, plan.rules))
    scenarios = scenarios_to_run(plan.checklist, plan.checks)
    ids = {entry.scenario.id for entry in scenarios}
    requested = frozenset(
        entry.check.id for entry in plan.checks if not entry.deselected and entry.check.scenario in ids
    )
    causes = find_causes(results)
    gpus, links = gpu_layout(facts)
    node = facts.get(Node)
    return Report(
        verdict=conclude(
            results, plan.rules.fail_on, causes=causes, interrupted=collected.interrupted, trainings=requested
        ),
        target=describe_target(facts, collected.target, collected.recorded_at),
        checklist=plan.asked,
        results=results,
        categories=categories(results, causes, plan.rules.fail_on),
        causes=causes,
        command=plan.command,
        recorded=collected.from_snapshot,
        decisions=decisions(results, plan.checklist),
        scenarios=tuple(entry.note for entry in scenarios),
        unused_waivers=unused_waivers(results, plan.rules.waivers),
        trainings=tuple(trainings(facts)),
        gpus=gpus,
        gpu_links=links,
        gpu_work=tuple(gpu_work(facts)),
        duration_s=collected.duration_s,
        started_at=collected.started_at.isoformat(timespec="seconds"),
        interrupted=collected.interrupted,
        node=node if isinstance(node, Node) else None,
        facts=shared_facts(facts),
        fail_on=plan.rules.fail_on,
    )


def _here(result: Result, asked: str) -> Result:
    """The result with fixes that run where the run's own command ran."""
    findings = []
    for judged in result.findings:
        remedy, rollback = judged.finding.remedy, judged.finding.rollback
        commands, look, undo = (
            tuple(in_same_place(one, asked) for one in group)
            for group in (remedy.commands, remedy.look, rollback.commands)
        )
        remedy, rollback = replace(remedy, commands=commands, look=look), replace(rollback, commands=undo)
        findings.append(replace(judged, finding=replace(judged.finding, remedy=remedy, rollback=rollback)))
    return replace(result, findings=tuple(findings))


@record
class _Past:
    """The last passing run."""

    started_at: str = ""
    """Empty if there is none in the history."""
    lock: Lock | None = None
    """What it found; None if that is not needed or not on record."""
    name: str = ""
    """The record, for people."""
    to: str = ""
    """The record, for ``kdoctor rollback --to``."""


def _last_passing(report: Report, collected: Collected, plan: Plan, *, use_history: bool) -> _Past:
    """The lock next to the checklist, or the history where the failure policy asks for it."""
    past = _Past(lock=plan.lock, name=str(plan.lock_file), to=str(plan.lock_file))
    if not use_history:
        return past
    series = Series(host=platform.node(), checklist=plan.checklist.name, target=report.target.partition(" (")[0])
    passed = report.verdict.conclusion is Conclusion.PASS
    past = replace(past, started_at=report.started_at if passed else find_start(os.environ, series, plan.scope))
    if not passed and report.decisions and plan.lock_file and not plan.lock and not collected.from_snapshot:
        lock, name = find_lock(os.environ, series)
        past = replace(past, lock=lock, name=name, to="last-passing")
    return past


def _compare(report: Report, collected: Collected, plan: Plan, past: _Past) -> Report:
    """The report with what has changed since the last passing run, the steps of its decisions, and the fixes."""
    facts, causes = collected.facts, relevant(report.causes, plan.rules.fail_on)
    visible, recorded = visible_gpus(facts), collected.from_snapshot
    drifted, undo, command = None, None, ""
    if past.lock is not None:
        now = recorded_facts(facts, identifiers=past.lock.identifiers)
        drifted = drift(past.lock, now, report.results, past.name)
        if other := caution(past.lock, now):
            warn(f"kdoctor: {past.name}: {other}")
        if report.decisions:
            installation = read_installation(facts)
            undo = plan_rollback(past.lock, now, installation, past.name, plan.checklist.asked_as)
            command = _rollback_command(plan, installation, past.to) if undo.steps and not other else ""
    return replace(
        report,
        drift=drifted,
        decisions=with_steps(report.decisions, report.results, undo),
        plan=plan_fixes(causes, plan.command, visible=visible, drift=drifted, rollback=command, recorded=recorded),
    )


def _rollback_command(plan: Plan, installation: Installation, to: str) -> str:
    """The command that writes a rollback script, and runs it."""
    options = ("--checklist", plan.checklist.asked_as, "--to", to, "--python", installation.python)
    command = quoted("kdoctor", "rollback", *options, "--fix-script", "rollback.sh")
    return f"{in_same_place(command, plan.command)} && bash rollback.sh"


def describe_target(facts: Facts, default: str, recorded_at: str = "") -> str:
    """The examined interpreter in one line: path, version, kind of environment, how it was chosen, and when recorded.

    For imported output: the snapshot, and what was not understood.
    """
    target = facts.get(Target)
    if not isinstance(target, Target):
        caveats = ", ".join(
            text for group in facts.values() if isinstance(group, FactGroup) and (text := group.caveat())
        )
        return f"{default} ({caveats})" if caveats else default
    version = f"{target.implementation.replace('cpython', 'Python')} {target.version}"
    recorded = f"; recorded {instant(recorded_at)}" if recorded_at else ""
    return f"{target.executable} ({version}, {target.environment}; chosen by: {target.chosen_by}{recorded})"
