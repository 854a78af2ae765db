"""What was decided in advance about this run's failures."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from kdoctor.checklist.resolve import Checklist, RollbackPolicy
from kdoctor.model import Decision, Result, Status

Course = Literal["roll back at once", "fix forward", "investigate"]
COURSES: tuple[Course, ...] = ("roll back at once", "fix forward", "investigate")


def decisions(results: Iterable[Result], checklist: Checklist) -> tuple[Decision, ...]:
    """One decision for each course of action that the failed checks call for, the gravest first.

    A check that both lists match is rolled back at once; one that neither matches is to be investigated.
    A checklist without a rollback section has decided nothing.
    """
    policy = checklist.rollback
    if policy is None:
        return ()
    by_course: dict[Course, list[str]] = {course: [] for course in COURSES}
    for result in results:
        if result.status is Status.FAIL:
            by_course[_course(result, policy)].append(result.id)
    return tuple(
        Decision(action=course, checks=tuple(ids), decides=policy.decides) for course, ids in by_course.items() if ids
    )


def _course(result: Result, policy: RollbackPolicy) -> Course:
    if _any(result, policy.at_once):
        return "roll back at once"
    return "fix forward" if _any(result, policy.fix_forward) else "investigate"


def _any(result: Result, patterns: Iterable[str]) -> bool:
    return any(pattern == result.family or fnmatchcase(result.id, pattern) for pattern in patterns)
