"""Checks x facts x checklist -> results and verdict. Pure: no I/O, no clock but the caller's."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from kdoctor.check import Check
from kdoctor.engine.exit_codes import EXIT_FAIL, EXIT_INTERRUPTED, EXIT_PASS, EXIT_UNKNOWN
from kdoctor.engine.report import Conclusion, JudgedFinding, Result, Verdict, Waiver
from kdoctor.facts import FactGroup, SmokeRun, SmokeRuns, Unavailable
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Assumptions, Evidence, Finding, NotApplicable, Outcome, Severity, Status, Unjudged
from kdoctor.text.lists import some

FactTable = Mapping[type[FactGroup], "FactGroup | Unavailable"]
"""Each group of facts by its type. A type that is absent was never collected."""


@dataclass(frozen=True, kw_only=True)
class PlannedCheck:
    """A check as a run wants it: its severity and parameters, and whether it was deselected."""

    check: Check
    severity: Severity
    parameters: Mapping[str, Any] = field(default_factory=dict)
    accept_unknown: str | None = None
    """The reason for which the checklist accepts that it is unknown."""
    deselected: str | None = None
    """Why it is not to be evaluated, if so."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a run takes from its checklist and its options besides the checks."""

    assumptions: Assumptions = field(default_factory=Assumptions)
    waivers: tuple[Waiver, ...] = ()
    today: date
    fail_on: Severity = Severity.ERROR
    """Failures below this severity do not fail the run."""
    allow_unknown: bool = False
    """Accept every unknown."""
    matrix: VersionMatrix | None = None
    """What is known of releases; a check that asks for it is unknown without."""


def judge(plan: Sequence[PlannedCheck], facts: FactTable, rules: Rules) -> tuple[Result, ...]:
    """Evaluate every planned check once, prerequisites first; the results are in the plan's order.

    A prerequisite that is not planned is not evaluated: planning brings prerequisites along.
    """
    planned = {entry.check.id: entry for entry in plan}
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
        result = _judge_one(entry, facts, rules, results)
        results[check_id] = replace(result, duration_s=time.perf_counter() - started)

    for check_id in planned:
        visit(check_id, ())
    return tuple(results[check_id] for check_id in planned)


def _judge_one(entry: PlannedCheck, facts: FactTable, rules: Rules, earlier: Mapping[str, Result]) -> Result:
    check = entry.check
    base = Result(
        id=check.id,
        family=check.family,
        title=check.title,
        why=check.why,
        status=Status.SKIP,
        severity=entry.severity,
        scenario=check.scenario,
    )
    if entry.deselected:
        return replace(base, reason=entry.deselected)
    if check.needs_gpus and not rules.assumptions.expects_gpus:
        return replace(base, reason="the checklist expects no GPUs")
    blocker = _blocker(check, earlier)
    if blocker:
        return replace(base, blocked_by=blocker, reason=f"needs {blocker}, which failed")
    arguments = _arguments(check, facts, rules)
    if isinstance(arguments, Unavailable):
        return _accept(replace(base, status=Status.UNKNOWN, reason=arguments.unavailable), entry, rules)
    return _accept(_evaluate(base, entry, arguments, rules), entry, rules)


def _blocker(check: Check, earlier: Mapping[str, Result]) -> str | None:
    """The prerequisite that failed, directly or through its own prerequisites."""
    for prerequisite in check.requires:
        result = earlier.get(prerequisite)
        if result and result.status is Status.FAIL:
            return prerequisite
        if result and result.blocked_by:
            return result.blocked_by
    return None


def _arguments(check: Check, facts: FactTable, rules: Rules) -> dict[str, object] | Unavailable:
    """The facts that the function asks for by type, or why one of them cannot be had."""
    arguments: dict[str, object] = {}
    for name, wanted in check.facts.items():
        value = _lookup(check, wanted, facts, rules)
        if isinstance(value, Unavailable) and name not in check.tolerant:
            return value
        arguments[name] = value
    return arguments


def asks_for(plan: Sequence[PlannedCheck], wanted: type[Any], rules: Rules) -> bool:
    """Whether a check that will be evaluated asks for that type."""
    return any(wanted in entry.check.facts.values() for entry in _evaluated(plan, rules))


def _evaluated(plan: Sequence[PlannedCheck], rules: Rules) -> Iterator[PlannedCheck]:
    return (
        entry
        for entry in plan
        if not entry.deselected and (rules.assumptions.expects_gpus or not entry.check.needs_gpus)
    )


def _lookup(check: Check, wanted: type[Any], facts: FactTable, rules: Rules) -> object:
    if wanted is Assumptions:
        return rules.assumptions
    if wanted is VersionMatrix:
        return rules.matrix or Unavailable(unavailable="no version matrix was given")
    if wanted is not SmokeRun:
        return facts.get(wanted, Unavailable(unavailable=f"no facts about {wanted.group} were collected"))
    runs = facts.get(SmokeRuns, Unavailable(unavailable="no smoke training was run"))
    if not isinstance(runs, SmokeRuns):
        return runs
    return runs.runs.get(check.scenario or "", Unavailable(unavailable=f"scenario {check.scenario} was not run"))


def _evaluate(base: Result, entry: PlannedCheck, arguments: Mapping[str, object], rules: Rules) -> Result:
    outcomes: list[Outcome] = []
    try:
        for outcome in entry.check.function(**arguments, **entry.parameters):
            outcomes.append(outcome)  # noqa: PERF402 - what was found before a crash must be kept
    except Exception as error:  # noqa: BLE001 - a plugin's defect must not end the run, and is never a pass
        reason = f"the check itself failed: {type(error).__name__}: {error}"
        outcomes.append(Unjudged(subject=base.id, reason=reason))
    return _from_outcomes(base, outcomes, rules)


def _from_outcomes(base: Result, outcomes: Sequence[Outcome], rules: Rules) -> Result:
    findings = tuple(_apply_waivers(base.id, outcome, rules) for outcome in outcomes if isinstance(outcome, Finding))
    unjudged = tuple(outcome for outcome in outcomes if isinstance(outcome, Unjudged))
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
    if findings:
        return replace(result, status=Status.SKIP, reason="every finding is waived")
    if result.evidence:
        return replace(result, status=Status.PASS)
    not_applicable = [outcome.reason for outcome in outcomes if isinstance(outcome, NotApplicable)]
    if not_applicable:
        return replace(result, reason="; ".join(dict.fromkeys(not_applicable)))
    return replace(result, status=Status.UNKNOWN, reason="the check evaluated nothing")


def _apply_waivers(check_id: str, finding: Finding, rules: Rules) -> JudgedFinding:
    matching = [
        waiver for waiver in rules.waivers if waiver.check == check_id and fnmatchcase(finding.subject, waiver.subject)
    ]
    if not matching:
        return JudgedFinding(finding=finding)
    latest = max(matching, key=lambda waiver: waiver.expires)
    return JudgedFinding(finding=finding, waiver=latest, expired=latest.expires < rules.today)


def unused_waivers(results: Iterable[Result], waivers: Iterable[Waiver]) -> tuple[Waiver, ...]:
    """The waivers that match nothing any more: their check was evaluated, and found nothing that they cover."""
    by_id = {result.id: result for result in results}
    unused = []
    for waiver in waivers:
        result = by_id.get(waiver.check)
        evaluated = result is not None and (result.findings or result.evidence)
        if not result or not evaluated or result.unjudged:
            continue
        if not any(fnmatchcase(item.finding.subject, waiver.subject) for item in result.findings):
            unused.append(waiver)
    return tuple(unused)


def _accept(result: Result, entry: PlannedCheck, rules: Rules) -> Result:
    if result.status is not Status.UNKNOWN:
        return result
    accepted = entry.accept_unknown or ("--allow-unknown" if rules.allow_unknown else None)
    return replace(result, accepted=accepted)


def conclude(
    results: Iterable[Result],
    fail_on: Severity = Severity.ERROR,
    *,
    interrupted: bool = False,
    trainings: Collection[str] = (),
) -> Verdict:
    """The verdict and the exit code. This is the only place that computes them.

    Args:
        results: what became of each check.
        fail_on: failures and unknowns below this severity do not count.
        interrupted: whether the user ended the run, so that what is missing says nothing.
        trainings: ids of the checks whose trainings were asked for. If all of them are skipped, nothing was trained,
            whatever else is well.
    """
    judged = tuple(results)
    weighty = [result for result in judged if result.severity.rank >= fail_on.rank]
    failed = [result.id for result in weighty if result.status is Status.FAIL]
    if interrupted:
        conclusion = Conclusion.FAIL if failed else Conclusion.UNKNOWN
        return Verdict(conclusion=conclusion, exit_code=EXIT_INTERRUPTED, reason="the run was interrupted")
    if failed:
        return Verdict(conclusion=Conclusion.FAIL, exit_code=EXIT_FAIL, reason=f"{some(failed)} failed")
    unknown = [
        result.id
        for result in weighty
        if (result.status is Status.UNKNOWN and not result.accepted) or result.blocked_by
    ]
    if unknown:
        return Verdict(
            conclusion=Conclusion.UNKNOWN, exit_code=EXIT_UNKNOWN, reason=f"{some(unknown)} could not be judged"
        )
    if not any(result.status in (Status.PASS, Status.FAIL) for result in judged):
        return Verdict(conclusion=Conclusion.UNKNOWN, exit_code=EXIT_UNKNOWN, reason="nothing was tested")
    untrained = [result.id for result in judged if result.id in trainings and result.status is Status.SKIP]
    if untrained and len(untrained) == len(trainings):
        reason = f"nothing was trained: {some(untrained)} skipped"
        return Verdict(conclusion=Conclusion.UNKNOWN, exit_code=EXIT_UNKNOWN, reason=reason)
    warned = any(result.status is Status.FAIL and result.severity is not Severity.INFO for result in judged)
    return Verdict(conclusion=Conclusion.PASS, exit_code=EXIT_PASS, reason=_why_passed(judged), warned=warned)


_SERVICE_CODES = {"OK": 0, "WARNING": 1, "CRITICAL": 2, "UNKNOWN": 3}
"""What a monitoring plug-in exits with (https://nagios-plugins.org/doc/guidelines.html, "Plugin Return Codes")."""


def exit_code_for(verdict: Verdict, format: str) -> int:  # noqa: A002 - the option's name
    """The exit code of a run whose standard output is in this format: Nagios and its kin have codes of their own."""
    return _SERVICE_CODES[verdict.service] if format == "nagios" else verdict.exit_code


def _why_passed(judged: Sequence[Result]) -> str:
    """A pass in words that hide no failure, waived or not, and no unknown which did not count."""
    failed = [result.id for result in judged if result.status is Status.FAIL]
    unknown = [result.id for result in judged if result.status is Status.UNKNOWN]
    waived = [result.id for result in judged if any(not item.counts for item in result.findings)]
    notes = [f"{some(failed)} failed"] if failed else []
    notes += [f"{some(unknown)} {_be(unknown)} unknown"] if unknown else []
    notes += [f"{some(waived)} {_be(waived)} waived"] if waived else []
    return f"nothing that stops the job; {', '.join(notes)}" if notes else "everything that was asked for passed"


def _be(ids: Sequence[str]) -> str:
    return "is" if len(ids) == 1 else "are"
