"""What was decided in advance about this run's failures."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from kdoctor.checklist.resolve import Checklist, RollbackPolicy
from kdoctor.engine.report import Decision, Result
from kdoctor.model import Status

Course = Literal["roll back at once", "fix forward", "investigate"]
COURSES: tuple[Course, ...] = ("roll back at once", "fix forward", "investigate")


def decisions(results: Iterable[Result], checklist: Checklist) -> tuple[Decision, ...]:
    """One decision for each course of action that the failed checks call for, the gravest first.

    Of several patterns that mean a check the most exact counts: its id before a glob, a glob before its family, that
    before its severity; of equally exact ones the gravest course. What none means is to be investigated.
    A checklist without a rollback section has decided nothing.
    """
    policy = checklist.rollback
    if policy is None:
        return ()
    by_course: dict[Course, list[tuple[str, str]]] = {course: [] for course in COURSES}
    for result in results:
        if result.status is Status.FAIL:
            course, criterion = _course(result, policy)
            by_course[course].append((result.id, criterion))
    return tuple(
        Decision(
            action=course,
            checks=tuple(check for check, _ in found),
            decides=policy.decides,
            within=policy.within,
            criteria=tuple(criterion for _, criterion in found),
        )
        for course, found in by_course.items()
        if found
    )


def _course(result: Result, policy: RollbackPolicy) -> tuple[Course, str]:
    """What to do about a failure, and the criterion that says so."""
    lists = (("at_once", policy.at_once), ("fix_forward", policy.fix_forward), ("investigate", policy.investigate))
    chosen: Course = "investigate"
    criterion, exactness = "no criterion names it", 0
    for course, (name, patterns) in zip(COURSES, lists, strict=True):
        for pattern in patterns:
            exact = _exactness(result, pattern)
            if exact > exactness:
                chosen, criterion, exactness = course, f"{name}: {pattern}", exact
    return chosen, criterion


def _exactness(result: Result, pattern: str) -> int:
    """How exactly a pattern means that check; 0 if it does not."""
    if pattern == result.id:
        return 4
    if fnmatchcase(result.id, pattern):
        return 3
    if pattern == result.family:
        return 2
    return 1 if pattern == f"severity:{result.severity.value}" else 0
