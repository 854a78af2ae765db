"""Sums up each family of checks in one line: the values that were read, or the worst problem. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kdoctor.engine.causes import describe_problem, relevant
from kdoctor.engine.report import Category, Cause, Mark, Result
from kdoctor.model import FAMILIES, Severity, Status, family_order

_FEW = 3
"""Unknown subjects whose reasons are named with the first of them."""
_NOT_RECORDED = "not in this recording"
_NOTHING_SHOWN = "no problem found"


def categories(
    results: Iterable[Result], causes: Sequence[Cause], fail_on: Severity = Severity.ERROR
) -> tuple[Category, ...]:
    """One line for each family that has results, in their order. A plugin's is left out if all of it was skipped.

    Plugins check what most machines lack, such as a network between nodes. Failures of severity info leave a family
    well if something passed, unless they fail the run.
    """
    causes = relevant(causes, fail_on)
    by_family: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda result: family_order(result.family)):
        by_family.setdefault(result.family, []).append(result)
    return tuple(
        _category(family, members, causes)
        for family, members in by_family.items()
        if family in FAMILIES or any(result.status is not Status.SKIP for result in members)
    )


def _category(family: str, results: Sequence[Result], causes: Sequence[Cause]) -> Category:
    postponed = {check for cause in causes if cause.after for check in (*cause.checks, *cause.explains)}
    failed = [result for result in results if result.status is Status.FAIL and result.id not in postponed]
    shown = {check for cause in causes for check in (*cause.checks, *cause.explains)}
    for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO):
        worst = [result for result in failed if result.severity is severity and result.id in shown]
        if worst:
            return Category(family=family, mark=Mark(severity.value), text="; ".join(_headlines(worst, causes)))
    has_passed = any(result.status is Status.PASS for result in results)
    is_judged = has_passed or any(result.status is Status.FAIL for result in results)
    gaps = [result for result in results if is_gap(result) or (result.status is Status.UNKNOWN and not is_judged)]
    if gaps and all(result.is_unrecorded for result in gaps):
        gaps = []
        if not (is_judged or _values(results)):
            if part := _values(results, Status.UNKNOWN):  # of what was cut off
                return Category(family=family, mark=Mark.UNKNOWN, text=part)
            return Category(family=family, mark=Mark.SKIP, text=_NOT_RECORDED, left_out=True)
    if gaps:
        values = _values(results) or (_NOTHING_SHOWN if has_passed and not causes else "")
        return _unknown(family, gaps, causes, values, is_judged=is_judged)
    if not is_judged or (not has_passed and any(result.blocked_by for result in results)):
        return _skipped(family, results, causes)
    mark = Mark.WARNING if any(result.id in postponed for result in results) else Mark.PASS if has_passed else Mark.INFO
    return Category(family=family, mark=mark, text=_values(results) or _NOTHING_SHOWN)


def _unknown(family: str, gaps: Sequence[Result], causes: Sequence[Cause], values: str, *, is_judged: bool) -> Category:
    """What could not be judged: because of a cause, or for another reason."""
    by_check = {check: cause for cause in reversed(causes) for check in cause.unjudged}
    found = [by_check.get(result.id) for result in gaps]
    first = found[0]
    if first and all(found):
        problem = describe_problem(first.problems[0])
        if is_judged:  # the cause names what is missing
            return Category(family=family, mark=Mark.UNKNOWN, text=values or f"not known: {problem}")
        return Category(family=family, mark=Mark.SKIP, text=_because_of(first))
    other = next(result for result, cause in zip(gaps, found, strict=True) if not cause)
    reason = f"{other.reason}{f' (and {len(gaps) - 1} more)' if len(gaps) > 1 else ''}"
    reason = shared_reason(gaps) or reason
    text = f"{values}; not known: {reason}" if values else f"not known: {reason}"
    return Category(family=family, mark=Mark.UNKNOWN, text=text)


def _because_of(cause: Cause) -> str:
    """The cause is described elsewhere on the screen, and once is enough."""
    return f"not checked because of {cause.problems[0].check}"


def shared_reason(unknown: Iterable[Result]) -> str:
    """Why most of many checks are unknown; empty for a few, or if each has another reason."""
    reasons = [item.reason for result in unknown for item in result.unjudged]
    most = Counter(reasons).most_common(1)
    return most[0][0] if most and most[0][1] > max(_FEW, len(reasons) // 2) else ""


def is_gap(result: Result) -> bool:
    """Whether the result is unknown, and a person should know."""
    return result.status is Status.UNKNOWN and not result.accepted and result.severity is not Severity.INFO


def _headlines(failed: Sequence[Result], causes: Sequence[Cause]) -> Iterator[str]:
    """The problems of the family that are causes; if there is none, its first finding."""
    ids = {result.id for result in failed}
    own = [problem for cause in causes for problem in cause.problems if problem.check in ids]
    if own:
        yield from dict.fromkeys(map(describe_problem, own))
        return
    finding = next(judged.finding for judged in failed[0].findings if judged.counts)
    yield f"{finding.subject}: {finding.headline}"


def _values(results: Sequence[Result], status: Status = Status.PASS) -> str:
    """The values that checks with this status state, each once."""
    briefs = (
        evidence.brief
        for result in results
        if result.status is status
        for evidence in result.evidence
        if evidence.brief
    )
    return ", ".join(dict.fromkeys(briefs))


def noted(results: Iterable[Result]) -> list[str]:
    """What happened on this machine without harm to a job, each with its subject."""
    return [
        f"{judged.finding.subject}: {judged.finding.headline}"
        for result in results
        if result.severity is Severity.INFO
        for judged in result.findings
        if judged.counts and judged.finding.noted
    ]


def _skipped(family: str, results: Sequence[Result], causes: Sequence[Cause]) -> Category:
    """Why nothing of the family was checked: the cause that prevented it, or the most frequent reason."""
    for result in results:
        if result.blocked_by:
            cause = next(cause for cause in causes if result.id in cause.blocked)
            return Category(family=family, mark=Mark.SKIP, text=_because_of(cause))
    reasons = [result.reason or "no reason was given" for result in results]
    return Category(family=family, mark=Mark.SKIP, text=max(reasons, key=reasons.count), left_out=True)
