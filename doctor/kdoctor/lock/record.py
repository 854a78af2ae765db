"""Makes a lock from a passing run."""

import hashlib
import math
from collections.abc import Mapping, Sequence

from kdoctor.checklist.resolve import Checklist
from kdoctor.checklist.text import plain_text
from kdoctor.engine.report import Conclusion, Report, Result
from kdoctor.engine.verdict import conclude
from kdoctor.facts import Facts
from kdoctor.lock.document import Accepted, Lock, Measure
from kdoctor.lock.facts import STEP_SECONDS, Recorded, recorded_facts
from kdoctor.model import Status
from kdoctor.version import __version__


def expectations_of(checklist: Checklist) -> str:
    """Digest of what a checklist expects. Order and comments do not matter."""
    return f"sha256:{hashlib.sha256(plain_text(checklist).encode()).hexdigest()}"


def reason_not_recordable(report: Report, accepted: Sequence[Accepted] = ()) -> str | None:
    """Why a run must not be recorded, or None. Accepted failures are ignored."""
    if report.interrupted:
        return "the run was interrupted"
    ignored = {item.check for item in accepted}
    verdict = conclude([result for result in report.results if result.id not in ignored or not _is_bad(result)])
    return None if verdict.conclusion is Conclusion.PASS else verdict.reason


def make_lock(
    checklist: Checklist,
    report: Report,
    found: Recorded,
    *,
    accepted: Sequence[Accepted] = (),
    previous: Lock | None = None,
) -> Lock:
    """The lock of a passing run (see :func:`reason_not_recordable`).

    A measured number within the range of the previous lock keeps the previous number, so that measuring twice
    changes nothing.
    """
    by_id = {result.id: result for result in report.results}
    needed = [item for item in accepted if _is_bad(by_id.get(item.check))]
    evaluated = {result.id: result.status.value for result in report.results if result.status is not Status.SKIP}
    return Lock(
        checklist=checklist.name,
        version=checklist.version,
        expectations=expectations_of(checklist),
        recorded=report.started_at,
        kdoctor=__version__,
        identifiers=found.identifiers,
        accepted=tuple(needed),
        facts={**found.facts, "checks": evaluated},
        measured=_kept(found, previous.measured if previous else {}),
    )


def own_lock(checklist: Checklist, report: Report, facts: Facts) -> Lock:
    """What a passing run found, for the history of this user on this machine.

    Includes paths and serial numbers, which a rollback needs and which stay private.
    """
    return make_lock(checklist, report, recorded_facts(facts, identifiers=True))


def _is_bad(result: Result | None) -> bool:
    return result is not None and (result.status in (Status.FAIL, Status.UNKNOWN) or bool(result.blocked_by))


def _kept(found: Recorded, before: Mapping[str, Measure]) -> dict[str, Measure]:
    return {
        name: before[name] if name in before and _is_unchanged(name, before[name], item, found.slower) else item
        for name, item in found.measured.items()
    }


def _is_unchanged(name: str, before: Measure, now: Measure, slower: float) -> bool:
    """Whether the number is within its recorded range, and a step's range was made with the same factor."""
    if not before.holds(now.value) or not name.endswith(STEP_SECONDS):
        return before.holds(now.value)
    added, added_now = (measure.high - slower * measure.value for measure in (before, now))
    return math.isclose(added, added_now, abs_tol=0.01 * before.value)
