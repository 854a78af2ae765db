"""The verdict of a run and its exit code. Nothing else computes them."""

from collections.abc import Collection, Iterable, Sequence

from kdoctor.engine.categories import shared_reason
from kdoctor.engine.causes import describe_problem
from kdoctor.engine.exit_codes import EXIT_FAIL, EXIT_INTERRUPTED, EXIT_PASS, EXIT_UNKNOWN
from kdoctor.engine.report import Cause, Conclusion, Mark, Result, Verdict
from kdoctor.model import Severity, Status
from kdoctor.text.lists import counted, some
from kdoctor.text.wrap import first_sentence, shorten

ALL_PASSED = "all selected checks passed"
"""The reason of a pass with neither warnings nor unknowns nor waivers."""

_LONGEST_REASON = 120
_SERVICE_CODES = {"OK": 0, "WARNING": 1, "CRITICAL": 2, "UNKNOWN": 3}
"""Exit codes of monitoring plug-ins (https://nagios-plugins.org/doc/guidelines.html, "Plugin Return Codes")."""


def conclude(
    results: Iterable[Result],
    fail_on: Severity = Severity.ERROR,
    *,
    causes: Sequence[Cause] = (),
    interrupted: bool = False,
    trainings: Collection[str] = (),
) -> Verdict:
    """The verdict and the exit code of a run.

    Args:
        results: the result of each check.
        fail_on: failures and unknowns below this severity do not count.
        causes: the causes of the failures, the worst one first.
        interrupted: whether the user ended the run, so that missing results mean nothing.
        trainings: ids of the checks whose trainings were requested. If all that count are skipped, or their failures
            are waived, the run is inconclusive.
    """
    judged = tuple(results)
    relevant = [result for result in judged if result.severity.rank >= fail_on.rank]
    failed = [result.id for result in relevant if result.status is Status.FAIL]
    if interrupted:
        conclusion = Conclusion.FAIL if failed else Conclusion.UNKNOWN
        return Verdict(conclusion=conclusion, exit_code=EXIT_INTERRUPTED, reason="the run was interrupted")
    if failed:
        return Verdict(conclusion=Conclusion.FAIL, exit_code=EXIT_FAIL, reason=_why_failed(failed, causes))
    unknown = [
        result for result in relevant if (result.status is Status.UNKNOWN and not result.accepted) or result.blocked_by
    ]
    if unknown:
        return _inconclusive(_why_unknown(unknown, judged))
    if not any(result.status in (Status.PASS, Status.FAIL) for result in judged):
        return _inconclusive("nothing was tested")
    trained = [result for result in relevant if result.id in trainings]
    trained = trained or [result for result in judged if result.id in trainings]
    if trained and all(result.status is Status.SKIP for result in trained):
        return _inconclusive(f"no training was judged: {some([result.id for result in trained])} skipped")
    warned = any(
        result.severity is not Severity.INFO and (result.status is Status.FAIL or _is_waived(result))
        for result in judged
    )
    return Verdict(conclusion=Conclusion.PASS, exit_code=EXIT_PASS, reason=_why_passed(judged), warned=warned)


def _why_failed(failed: Sequence[str], causes: Sequence[Cause]) -> str:
    """The worst cause, and how many more there are."""
    relevant = [cause for cause in causes if {*cause.checks, *cause.explains} & set(failed)]
    if not relevant:
        return f"{some(failed)} failed"
    worst, more = relevant[0], sum(not cause.after for cause in relevant[1:])
    headline = shorten(describe_problem(worst.problems[0]), _LONGEST_REASON)
    return f"{headline} ({worst.checks[0]})" + (f", and {counted(more, 'more problem')}" if more else "")


def _why_unknown(unknown: Sequence[Result], judged: Sequence[Result]) -> str:
    read = {result.status for result in judged} & {Status.PASS, Status.FAIL}
    recorded = [result.id for result in unknown if not result.is_unrecorded]
    if not recorded:
        wrong = "no error" if Status.FAIL in read else "nothing wrong" if read else "nothing judged"
        return f"{wrong} in what was recorded, and {counted(len(unknown), 'check')} need more"
    shared = first_sentence(shared_reason(unknown)).rstrip(".")
    return shorten(shared, _LONGEST_REASON) or f"{some(recorded)} could not be evaluated"


def _inconclusive(reason: str) -> Verdict:
    return Verdict(conclusion=Conclusion.UNKNOWN, exit_code=EXIT_UNKNOWN, reason=reason)


def _why_passed(judged: Sequence[Result]) -> str:
    """Every warning, unknown, waiver and finding on a hidden GPU of a run that passed nevertheless."""
    warned = [result.id for result in judged if result.mark in (Mark.WARNING, Mark.ERROR)]
    unknown = [result.id for result in judged if result.status is Status.UNKNOWN]
    waived = [result.id for result in judged if _is_waived(result)]
    hidden = [result.id for result in judged if any(item.hidden for item in result.findings)]
    kinds = (("waived: ", waived), ("", warned), ("unknown: ", unknown), ("on hidden GPUs: ", hidden))
    return "; ".join(f"{word}{some(ids)}" for word, ids in kinds if ids) or ALL_PASSED


def _is_waived(result: Result) -> bool:
    return any(not (item.counts or item.hidden) for item in result.findings)


def exit_code_for(verdict: Verdict, format: str) -> int:  # noqa: A002 - the option's name
    """The exit code for a format of the standard output: monitoring systems have their own codes."""
    return _SERVICE_CODES[verdict.service] if format == "nagios" else verdict.exit_code
