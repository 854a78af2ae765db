"""Makes a lock of a green run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kdoctor import __version__
from kdoctor.checklist.resolve import Checklist
from kdoctor.engine.judge import FactTable
from kdoctor.engine.report import Conclusion, Report, Result
from kdoctor.engine.verdict import conclude
from kdoctor.lock.document import Accepted, Lock, Measure
from kdoctor.lock.expectations import expectations_of
from kdoctor.lock.facts import STEP_SECONDS, Recorded, recorded_facts, without_job
from kdoctor.model import Status


def not_green(report: Report, accepted: Sequence[Accepted] = ()) -> str | None:
    """Why a run must not be recorded, or None. What is accepted, with its reason, does not count."""
    if report.interrupted:
        return "the run was interrupted"
    spared = {item.check for item in accepted}
    verdict = conclude([result for result in report.results if result.id not in spared or not _is_bad(result)])
    return None if verdict.conclusion is Conclusion.PASS else verdict.reason


def make_lock(
    checklist: Checklist,
    report: Report,
    found: Recorded,
    *,
    accepted: Sequence[Accepted] = (),
    previous: Lock | None = None,
) -> Lock:
    """The lock of a run that is green (see :func:`not_green`).

    A measured number that is within the range of the previous lock keeps that lock's number: measuring twice
    is no change.
    """
    by_id = {result.id: result for result in report.results}
    needed = [item for item in accepted if _is_bad(by_id.get(item.check))]
    return Lock(
        checklist=checklist.name,
        version=checklist.version,
        expectations=expectations_of(checklist),
        recorded=report.started_at,
        kdoctor=__version__,
        identifiers=found.identifiers,
        accepted=tuple(needed),
        facts={**found.facts, "checks": {result.id: result.status.value for result in report.results}},
        measured=_kept(found, previous.measured if previous else {}),
    )


def own_lock(checklist: Checklist, report: Report, facts: FactTable) -> Lock:
    """What a green run found, for the history of this user on this machine.

    With paths and serial numbers, which the way back needs and nobody else sees; without what names one job, which no
    way back may restore.
    """
    return make_lock(checklist, report, without_job(recorded_facts(facts, identifiers=True)))


def _is_bad(result: Result | None) -> bool:
    return result is not None and (result.status in (Status.FAIL, Status.UNKNOWN) or bool(result.blocked_by))


def _kept(found: Recorded, before: Mapping[str, Measure]) -> dict[str, Measure]:
    return {
        name: before[name] if name in before and _is_unchanged(name, before[name], item, found.slower) else item
        for name, item in found.measured.items()
    }


def _is_unchanged(name: str, before: Measure, now: Measure, slower: float) -> bool:
    """Whether it is within the range of then, and a step's range was set as it is now: as many times, and as much."""
    if not before.holds(now.value) or not name.endswith(STEP_SECONDS):
        return before.holds(now.value)
    added, added_now = (measure.high - slower * measure.value for measure in (before, now))
    return math.isclose(added, added_now, abs_tol=0.01 * before.value)
