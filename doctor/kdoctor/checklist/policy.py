"""Applies the rollback policy of a checklist to the failures of a run."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from kdoctor.checklist.resolve import Checklist
from kdoctor.checklist.schema import RollbackPart
from kdoctor.engine.report import Decision, Result
from kdoctor.model import Status

Course = Literal["roll back at once", "fix forward", "investigate"]
COURSES: tuple[Course, ...] = ("roll back at once", "fix forward", "investigate")


def decisions(results: Iterable[Result], checklist: Checklist) -> tuple[Decision, ...]:
    """One decision for each course of action that failed checks call for, most severe first.

    If several patterns match a check, the most specific wins: its id, then a glob, then its family, then its severity.
    Ties go to the most severe course. Checks that no pattern matches are to be investigated. A checklist without a
    rollback section has no policy.
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


def _course(result: Result, policy: RollbackPart) -> tuple[Course, str]:
    """What to do about a failure, and the rule that decides it."""
    lists = (("at_once", policy.at_once), ("fix_forward", policy.fix_forward), ("investigate", policy.investigate))
    chosen: Course = "investigate"
    criterion, best = "no rule covers it", 0
    for course, (name, patterns) in zip(COURSES, lists, strict=True):
        for pattern in patterns:
            specificity = _specificity(result, pattern)
            if specificity > best:
                chosen, criterion, best = course, f"{name}: {pattern}", specificity
    return chosen, criterion


def _specificity(result: Result, pattern: str) -> int:
    """How specifically a pattern matches the check; 0 if it does not."""
    if pattern == result.id:
        return 4
    if fnmatchcase(result.id, pattern):
        return 3
    if pattern == result.family:
        return 2
    return 1 if pattern == f"severity:{result.severity.value}" else 0
