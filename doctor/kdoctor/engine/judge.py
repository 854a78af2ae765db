"""Evaluates planned checks on facts. Pure: no I/O, and the date comes from the caller."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from kdoctor.check import Check
from kdoctor.engine.report import ALLOW_UNKNOWN, JudgedFinding, Result, Waiver
from kdoctor.errors import described
from kdoctor.facts import Environment, Facts, Gpus, Host, NotCollected, SmokeRun, SmokeRuns, Unavailable
from kdoctor.facts.consistent import consistent
from kdoctor.facts.environment import NotRecordedError
from kdoctor.facts.visible import VARIABLE, hidden_gpus
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import (
    OF_THE_CHECK,
    Assumptions,
    Evidence,
    Finding,
    NotApplicable,
    Outcome,
    Remedy,
    Severity,
    Status,
    Unjudged,
)
from kdoctor.records import record
from kdoctor.text.subjects import gpu_index

_ALL_HIDDEN = f"{VARIABLE} hides all GPUs that it is about from the job"
_OF_GPUS = ("gpu", "topology")
"""Families that need a GPU to judge."""


@record
class PlannedCheck:
    """A check with the severity and parameters of one run."""

    check: Check
    severity: Severity
    parameters: Mapping[str, Any] = field(default_factory=dict)
    accept_unknown: str | None = None
    """Why the checklist accepts an unknown result."""
    deselected: str | None = None
    """Why it is not evaluated; None if it is."""


@record
class Rules:
    """Settings of a run, from its checklist and options."""

    assumptions: Assumptions = field(default_factory=Assumptions)
    waivers: tuple[Waiver, ...] = ()
    today: date
    fail_on: Severity = Severity.ERROR
    """Failures below this severity do not fail the run."""
    allow_unknown: bool = False
    """Accept every unknown."""
    matrix: VersionMatrix | None = None
    """The known releases. Without it, checks that ask for it are unknown."""
    scenarios: Mapping[str, int] = field(default_factory=dict)
    """The version of each scenario."""
    raises: bool = False
    """Whether the error of a check ends the run, as in a test, instead of making it unknown."""


def judge(plan: Sequence[PlannedCheck], facts: Facts, rules: Rules) -> tuple[Result, ...]:
    """Evaluate every planned check once, prerequisites first. Results are in the plan's order.

    A prerequisite that is not in the plan is not evaluated.
    """
    planned = {entry.check.id: entry for entry in plan}
    facts = consistent(facts, rules.scenarios)
    hidden = _hidden_subjects(facts)
    results: dict[str, Result] = {}

    def visit(check_id: str, path: tuple[str, ...]) -> None:
        if check_id in results or check_id not in planned:
            return
        if check_id in path:
            raise ValueError(f"checks require each other in a circle: {' -> '.join((*path, check_id))}")
        entry = planned[check_id]
        for prerequisite in entry.check.requires:
            visit(prerequisite, (*path, check_id))
        started = time.perf_counter()
        result = _judge_one(entry, facts, rules, results, hidden)
        results[check_id] = replace(result, duration_s=time.perf_counter() - started)

    for check_id in planned:
        visit(check_id, ())
    return tuple(_of_this_job(_answered(results[check_id], results), results, plan) for check_id in planned)


def _of_this_job(result: Result, results: Mapping[str, Result], plan: Sequence[PlannedCheck]) -> Result:
    """What is wrong for some jobs is evidence if a check has judged the user's job for it."""
    if result.status is not Status.FAIL or result.severity is Severity.ERROR or result.unjudged:
        return result
    answering = [entry.check.id for entry in plan if result.id in entry.check.answers]
    by = [name for name in answering if results[name].status in (Status.PASS, Status.FAIL)]
    if not by:
        return result
    evidence = (
        Evidence(subject=item.finding.subject, observed=f"{item.finding.observed}; your job: see {by[-1]}")
        for item in result.findings
    )
    return replace(result, status=Status.PASS, findings=(), evidence=(*result.evidence, *evidence))


def _answered(result: Result, results: Mapping[str, Result]) -> Result:
    """What a table does not know is known if another check has tried it on this machine."""
    tried = {item.answered_by for item in result.unjudged}
    passed = all(check in results and results[check].status is Status.PASS for check in tried)
    if result.status is not Status.UNKNOWN or not (tried and passed):
        return result
    evidence = (
        Evidence(subject=item.subject, observed=f"{item.reason}; {item.answered_by} passed") for item in result.unjudged
    )
    return replace(
        result, status=Status.PASS, reason=None, unjudged=(), evidence=(*result.evidence, *evidence), accepted=None
    )


@record
class _Hidden:
    """The subjects that are about a GPU that CUDA_VISIBLE_DEVICES hides from the job, pairs with such a GPU included.

    What is wrong with such a GPU does not stop the job.
    """

    indices: frozenset[int] = frozenset()
    others: frozenset[str] = frozenset()

    def __contains__(self, subject: str) -> bool:
        # Checks may know the address of a lost GPU that the driver does not report.
        return gpu_index(subject) in self.indices or subject in self.others


_NOTHING = _Hidden()


def _hidden_subjects(facts: Facts) -> _Hidden:
    gpus, environment = facts.get(Gpus), facts.get(Environment)
    if not isinstance(gpus, Gpus) or not isinstance(environment, Environment):
        return _Hidden()
    hidden = {gpu.index: gpu for gpu in hidden_gpus(environment, gpus.devices)}
    others = {f"GPU at {gpu.bus_id}" for gpu in hidden.values()}
    others |= {pair.subject for pair in gpus.pairs if pair.first in hidden or pair.second in hidden}
    return _Hidden(indices=frozenset(hidden), others=frozenset(others))


def _judge_one(
    entry: PlannedCheck, facts: Facts, rules: Rules, earlier: Mapping[str, Result], hidden: _Hidden
) -> Result:
    check = entry.check
    base = Result(
        id=check.id,
        family=check.family,
        title=check.title,
        why=check.why,
        sources=check.sources,
        status=Status.SKIP,
        severity=entry.severity,
        scenario=check.scenario,
    )
    if entry.deselected:
        return replace(base, reason=entry.deselected, left_out=True)
    if check.needs_gpus and not rules.assumptions.expects_gpus:
        return replace(base, reason="the checklist expects no GPUs")
    unrecorded = _unrecorded(check, facts)
    if unrecorded:
        return replace(base, reason=unrecorded)
    blocker = _blocker(check, earlier)
    if blocker:
        return replace(base, blocked_by=blocker, reason=f"requires {blocker}, which failed")
    arguments = _arguments(check, facts, rules)
    if isinstance(arguments, Unavailable):
        missing = Unjudged(
            subject=check.scenario or check.id, reason=arguments.unavailable, explained_by=check.explained_by
        )
        gaps = (missing,) if check.explained_by else ()
        unknown = replace(base, status=Status.UNKNOWN, reason=arguments.unavailable, unjudged=gaps)
        return replace(base, reason=check.unread) if check.unread else _accept(unknown, entry, rules)
    outcomes = [_with_age(outcome, check, rules) for outcome in _evaluate(entry, arguments, rules)]
    result = _from_outcomes(base, outcomes, rules, hidden)
    return _accept(_refuse_empty_pass(result, facts), entry, rules)


def _unrecorded(check: Check, facts: Facts) -> str:
    """Why the check is skipped with this recording: command output has no facts about some subjects."""
    if Environment in facts:
        return ""
    recorded = {getattr(group, "unrecorded", "") for group in facts}
    reasons = (getattr(wanted, "unrecorded", "") for wanted in check.facts.values())
    return next((reason for reason in reasons if reason and reason not in recorded), "")


def _with_age(outcome: Outcome, check: Check, rules: Rules) -> Outcome:
    """What an old version matrix does not know is said to be due to its age."""
    if not isinstance(outcome, Unjudged) or rules.matrix is None or VersionMatrix not in check.facts.values():
        return outcome
    age = rules.matrix.too_old(rules.today)
    return replace(outcome, reason=f"{outcome.reason} (the version matrix is {age})") if age else outcome


def _refuse_empty_pass(result: Result, facts: Facts) -> Result:
    """A check of the GPUs or their links has a subject only if the driver lists a GPU."""
    gpus = facts.get(Gpus)
    lists_none = isinstance(gpus, Gpus) and not gpus.devices and not gpus.count
    states_nothing = result.status is not Status.SKIP and not (result.findings or result.unjudged)
    if lists_none and states_nothing and result.family in _OF_GPUS:
        return replace(result, status=Status.SKIP, evidence=(), reason="the driver lists no GPU")
    return result


def _blocker(check: Check, earlier: Mapping[str, Result]) -> str | None:
    """The prerequisite that failed, directly or through another one."""
    for prerequisite in check.requires:
        result = earlier.get(prerequisite)
        if result and result.status is Status.FAIL:
            return prerequisite
        if result and result.blocked_by:
            return result.blocked_by
    return None


def _arguments(check: Check, facts: Facts, rules: Rules) -> dict[str, object] | Unavailable:
    """The facts that the function asks for by type, or why one of them is unavailable."""
    arguments: dict[str, object] = {}
    for name, wanted in check.facts.items():
        value = _lookup(check, wanted, facts, rules)
        if isinstance(value, Unavailable) and name not in check.tolerant:
            return value
        arguments[name] = value
    return arguments


def asks_for(plan: Sequence[PlannedCheck], wanted: type[Any], rules: Rules) -> bool:
    """Whether a check that will be evaluated asks for that type."""
    return any(
        wanted in entry.check.facts.values()
        for entry in plan
        if not entry.deselected and (rules.assumptions.expects_gpus or not entry.check.needs_gpus)
    )


def _lookup(check: Check, wanted: type[Any], facts: Facts, rules: Rules) -> object:
    if wanted is Assumptions:
        return rules.assumptions
    if wanted is VersionMatrix and rules.matrix is not None:
        host = facts.get(Host)
        return rules.matrix.at("wsl2" if isinstance(host, Host) and host.in_wsl else None)
    if wanted is VersionMatrix:
        return Unavailable(unavailable="no version matrix was given")
    if wanted is not SmokeRun:
        return facts.get(wanted, NotCollected(wanted))
    runs = facts.get(SmokeRuns, Unavailable(unavailable="no smoke training was run"))
    if not isinstance(runs, SmokeRuns):
        return runs
    return runs.runs.get(check.scenario or "", Unavailable(unavailable=f"scenario {check.scenario} was not run"))


def _evaluate(entry: PlannedCheck, arguments: Mapping[str, object], rules: Rules) -> list[Outcome]:
    outcomes: list[Outcome] = []
    try:
        for outcome in entry.check.function(**arguments, **entry.parameters):
            if isinstance(outcome, Finding) and outcome.remedy == OF_THE_CHECK:
                outcome = replace(outcome, remedy=Remedy.configure(entry.check.remedy))  # noqa: PLW2901
            outcomes.append(outcome)  # outcomes from before a crash are kept
    except NotRecordedError as error:
        outcomes.append(Unjudged(subject=str(error), reason="it was not recorded"))
    except (Exception, SystemExit) as error:
        if rules.raises:
            raise
        reason = f"the check raised {described(error, entry.check.function)}"
        outcomes.append(Unjudged(subject=entry.check.id, reason=reason))
    return outcomes


def _from_outcomes(base: Result, outcomes: Sequence[Outcome], rules: Rules, hidden: _Hidden = _NOTHING) -> Result:
    findings = tuple(
        replace(_apply_waivers(base.id, outcome, rules), hidden=outcome.subject in hidden)
        for outcome in outcomes
        if isinstance(outcome, Finding)
    )
    unjudged = tuple(item for item in outcomes if isinstance(item, Unjudged) and item.subject not in hidden)
    result = replace(
        base,
        findings=findings,
        unjudged=unjudged,
        evidence=tuple(outcome for outcome in outcomes if isinstance(outcome, Evidence)),
        reason="; ".join(f"{item.subject}: {item.reason}" for item in unjudged) or None,
    )
    if any(finding.counts for finding in findings):
        return replace(result, status=Status.FAIL)
    if unjudged:
        return replace(result, status=Status.UNKNOWN)
    if any(not finding.hidden for finding in findings):
        return replace(result, status=Status.SKIP, reason="all findings are waived")
    if any(evidence.subject not in hidden for evidence in result.evidence):
        return replace(result, status=Status.PASS)
    reasons = dict.fromkeys(item.reason if isinstance(item, NotApplicable) else _ALL_HIDDEN for item in outcomes)
    if reasons:
        return replace(result, reason="; ".join(reasons))
    return replace(result, status=Status.UNKNOWN, reason="the check found nothing to evaluate")


def _apply_waivers(check_id: str, finding: Finding, rules: Rules) -> JudgedFinding:
    matching = [
        waiver for waiver in rules.waivers if waiver.check == check_id and fnmatchcase(finding.subject, waiver.subject)
    ]
    if not matching:
        return JudgedFinding(finding=finding)
    latest = max(matching, key=lambda waiver: waiver.expires)
    return JudgedFinding(finding=finding, waiver=latest, expired=latest.expires < rules.today)


def unused_waivers(results: Iterable[Result], waivers: Iterable[Waiver]) -> tuple[Waiver, ...]:
    """Waivers whose check was completely evaluated and has no finding that they cover."""
    by_id = {result.id: result for result in results}

    def is_unused(waiver: Waiver) -> bool:
        result = by_id.get(waiver.check)
        if not result or result.unjudged or not (result.findings or result.evidence):
            return False
        return not any(fnmatchcase(item.finding.subject, waiver.subject) for item in result.findings)

    return tuple(filter(is_unused, waivers))


def _accept(result: Result, entry: PlannedCheck, rules: Rules) -> Result:
    if result.status is not Status.UNKNOWN:
        return result
    return replace(result, accepted=entry.accept_unknown or (ALLOW_UNKNOWN if rules.allow_unknown else None))
