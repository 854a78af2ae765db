"""Builds the report of a run. Every command that reports calls :func:`build_report`."""

import os
import platform

from kdoctor.checklist.plan import scenarios_to_run
from kdoctor.checklist.policy import decisions
from kdoctor.commands.shell import quoted
from kdoctor.engine.categories import categories
from kdoctor.engine.causes import find_causes, relevant
from kdoctor.engine.fixes import plan_fixes
from kdoctor.engine.judge import judge, unused_waivers
from kdoctor.engine.report import Conclusion, Decision, Drift, Report, Result
from kdoctor.engine.verdict import conclude
from kdoctor.facts import FactGroup, Facts, Node, Target
from kdoctor.history.last_passing import Series, find_lock, find_start
from kdoctor.history.location import is_off
from kdoctor.lock.document import Lock
from kdoctor.lock.drift import drift
from kdoctor.lock.facts import recorded_facts
from kdoctor.rollback.decisions import with_steps
from kdoctor.rollback.installers import Installation, read_installation
from kdoctor.rollback.plan import plan_rollback
from kdoctor.run.measured import gpu_layout, gpu_work, trainings, visible_gpus
from kdoctor.run.node_facts import shared_facts
from kdoctor.run.plan import Plan
from kdoctor.run.session import Collected


def build_report(collected: Collected, plan: Plan, *, use_history: bool = False) -> Report:
    """Judge the facts and put everything about the run into a report.

    Args:
        collected: the facts, and how they were collected.
        plan: what they are judged by.
        use_history: whether to look for the last passing run in this machine's history.
    """
    facts = collected.facts
    results = judge(plan.checks, facts, plan.rules)
    scenarios = scenarios_to_run(plan.checklist, plan.checks)
    ids = {entry.scenario.id for entry in scenarios}
    requested = frozenset(
        entry.check.id for entry in plan.checks if not entry.deselected and entry.check.scenario in ids
    )
    causes = find_causes(results)
    verdict = conclude(
        results, plan.rules.fail_on, causes=causes, interrupted=collected.interrupted, trainings=requested
    )
    started_at = collected.started_at.isoformat(timespec="seconds")
    target = describe_target(facts, collected.target)
    series = Series(host=platform.node(), checklist=plan.checklist.name, target=target.partition(" (")[0])
    use_history = use_history and not is_off(os.environ)
    last_passing_at = ""
    if use_history:
        passed = verdict.conclusion is Conclusion.PASS
        last_passing_at = started_at if passed else find_start(os.environ, series, plan.scope)
    decided = decisions(results, plan.checklist)
    lock, name, to = plan.lock, str(plan.lock_file), str(plan.lock_file)
    if decided and plan.lock_file and not lock and use_history and not collected.from_snapshot:
        lock, name = find_lock(os.environ, series)
        to = "last-passing"
    drifted, decided, back = _compare(facts, plan, results, decided, lock, name)
    rollback = _rollback_command(plan, back, to) if back else ""
    gpus, links = gpu_layout(facts)
    node = facts.get(Node)
    return Report(
        verdict=verdict,
        target=target,
        checklist=plan.checklist.title,
        results=results,
        categories=categories(results, causes, plan.rules.fail_on),
        causes=causes,
        plan=plan_fixes(
            relevant(causes, plan.rules.fail_on),
            plan.command,
            visible=visible_gpus(facts),
            drift=drifted,
            rollback=rollback,
        ),
        command=plan.command,
        decisions=decided,
        scenarios=tuple(entry.note for entry in scenarios),
        unused_waivers=unused_waivers(results, plan.rules.waivers),
        drift=drifted,
        trainings=tuple(trainings(facts)),
        gpus=gpus,
        gpu_links=links,
        gpu_work=tuple(gpu_work(facts)),
        last_green_at=last_passing_at,
        duration_s=collected.duration_s,
        started_at=started_at,
        interrupted=collected.interrupted,
        node=node if isinstance(node, Node) else None,
        facts=shared_facts(facts),
        fail_on=plan.rules.fail_on,
    )


def _compare(
    facts: Facts, plan: Plan, results: tuple[Result, ...], decided: tuple[Decision, ...], lock: Lock | None, name: str
) -> tuple[Drift | None, tuple[Decision, ...], Installation | None]:
    """What changed since the last passing run, the decisions with their steps, and what a rollback would change."""
    if lock is None:
        return None, with_steps(decided, results, None), None
    now = recorded_facts(facts, identifiers=lock.identifiers)
    drifted = drift(lock, now, results, name)
    if not decided:
        return drifted, (), None
    installation = read_installation(facts)
    rollback = plan_rollback(lock, now, installation, name, plan.checklist.asked_as)
    return drifted, with_steps(decided, results, rollback), installation if rollback.steps else None


def _rollback_command(plan: Plan, installation: Installation, to: str) -> str:
    """The command that writes a rollback script, and runs it."""
    options = ("--checklist", plan.checklist.asked_as, "--to", to, "--python", installation.python, "--script")
    return f"{quoted('kdoctor', 'rollback', *options)} > rollback.sh && bash rollback.sh"


def describe_target(facts: Facts, default: str) -> str:
    """The examined interpreter in one line: path, version, kind of environment, and how it was chosen.

    For imported output: the snapshot, and what was not understood.
    """
    target = facts.get(Target)
    if not isinstance(target, Target):
        caveats = ", ".join(
            text for group in facts.values() if isinstance(group, FactGroup) and (text := group.caveat())
        )
        return f"{default} ({caveats})" if caveats else default
    version = f"{target.implementation.replace('cpython', 'Python')} {target.version}"
    return f"{target.executable} ({version}, {target.environment}; chosen by: {target.chosen_by})"
