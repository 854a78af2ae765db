"""Sums up each family of checks in one line: the values that were read, or the worst problem. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kdoctor.engine.causes import describe_problem, relevant
from kdoctor.engine.report import Category, Cause, Mark, Result
from kdoctor.model import FAMILIES, Severity, Status

_NOTHING_SHOWN = "no problem found"


def categories(results: Iterable[Result], causes: Sequence[Cause]) -> tuple[Category, ...]:
    """One line for each family that has results, in the order of ``FAMILIES``."""
    by_family: dict[str, list[Result]] = {family: [] for family in FAMILIES}
    for result in results:
        by_family[result.family].append(result)
    return tuple(_category(family, members, causes) for family, members in by_family.items() if members)


def _category(family: str, results: Sequence[Result], causes: Sequence[Cause]) -> Category:
    postponed = {check for cause in relevant(causes) if cause.after for check in (*cause.checks, *cause.explains)}
    failed = [result for result in results if result.status is Status.FAIL and result.id not in postponed]
    for severity in (Severity.ERROR, Severity.WARNING):
        worst = [result for result in failed if result.severity is severity]
        if worst:
            return Category(family=family, mark=Mark(severity.value), text="; ".join(_headlines(worst, causes)))
    unknown = [result for result in results if is_gap(result)]
    values = _values(results)
    if unknown:
        reasons = _count_reasons(unknown, causes)
        return Category(family=family, mark=Mark.UNKNOWN, text="; ".join([*([values] if values else []), reasons]))
    if any(result.id in postponed for result in results):
        return Category(family=family, mark=Mark.WARNING, text=values or _NOTHING_SHOWN)
    if any(result.status in (Status.PASS, Status.FAIL) for result in results):
        return Category(family=family, mark=Mark.PASS, text=values or _NOTHING_SHOWN)
    accepted = [result for result in results if result.status is Status.UNKNOWN]
    if accepted:
        return Category(family=family, mark=Mark.UNKNOWN, text=f"not known: {accepted[0].reason}")
    return _skipped(family, results, causes)


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


def _values(results: Iterable[Result]) -> str:
    """The values that passed checks state, each once."""
    briefs = (
        evidence.brief
        for result in results
        if result.status is Status.PASS
        for evidence in result.evidence
        if evidence.brief
    )
    return ", ".join(dict.fromkeys(briefs))


def _count_reasons(unknown: Sequence[Result], causes: Sequence[Cause]) -> str:
    explained = {check for cause in causes for check in cause.unjudged}
    if all(result.id in explained for result in unknown):
        cause = next(cause for cause in causes if unknown[0].id in cause.unjudged)
        return f"not known: {describe_problem(cause.problems[0])}"
    first = next(result for result in unknown if result.id not in explained)
    more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
    return f"not known: {first.reason}{more}"


def _skipped(family: str, results: Sequence[Result], causes: Sequence[Cause]) -> Category:
    """Why nothing of the family was checked: the cause that prevented it, or the most frequent reason."""
    for result in results:
        if result.blocked_by:
            cause = next(cause for cause in causes if result.id in cause.blocked)
            text = f"not checked: {describe_problem(cause.problems[0])}"
            return Category(family=family, mark=Mark.SKIP, text=text)
    reasons = [result.reason or "no reason was given" for result in results]
    return Category(family=family, mark=Mark.SKIP, text=max(reasons, key=reasons.count), left_out=True)
