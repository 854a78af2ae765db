"""Makes the checks that judge each case of a training by comparing it with the same training on one device."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kdoctor.check import Check, CheckText, check_of, text_of
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases

_CASES = {check: cases for scenario in SCENARIOS for check, cases in scenario.judged_by.items()}

Judge = Callable[[Comparison, SmokeCase], Outcome]


def cases_of(check_id: str) -> tuple[str, ...]:
    """The cases that a scenario's definition gives to a check."""
    return _CASES[check_id]


def trained(
    id: str,  # noqa: A002 - always passed by position
    *,
    severity: Severity = Severity.ERROR,
    scenario: str = "",
    cases: Sequence[str] | None = None,
    **options: Any,
) -> Callable[[Judge], Check]:
    """Make a check from a function that judges one case by a comparison. Its docstring is as for ``check``.

    Args:
        id: family and slug.
        severity: the weight of a failure.
        scenario: the scenario that it judges; the one with the check's id if empty.
        cases: the cases that it judges; those that the scenario's definition gives to it if None.
        options: ``requires``, the checks that must not have failed; ``explained_by``, those whose failure explains that
            there is no run; ``tolerance``, the default of the check's parameter, None if it has none; ``replicated``,
            whether a case must have trained on all requested replicas, at least two; ``finished``, whether a case that
            did not finish is reported without the function; and other fields of ``Comparison``.
    """

    def make(judge: Judge) -> Check:
        return trained_check(
            id,
            text_of(id, judge),
            judge,
            severity=severity,
            scenario=scenario or id,
            cases=cases_of(id) if cases is None else cases,
            **options,
        )

    return make


def trained_check(
    id: str,  # noqa: A002 - always passed by position
    text: CheckText,
    judge: Judge,
    *,
    severity: Severity,
    scenario: str,
    cases: Sequence[str],
    requires: Sequence[str] = TENSORFLOW,
    explained_by: Sequence[str] = NO_GPU,
    tolerance: float | None = TOLERANCE,
    replicated: bool = True,
    finished: bool = True,
    **comparison: Any,
) -> Check:
    """A check whose text is data; see :func:`trained`."""
    usual = TOLERANCE if tolerance is None else tolerance

    def judge_within(
        run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = usual
    ) -> Iterator[Outcome]:
        compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance, **comparison)
        return judge_cases(run, cases, lambda case: judge(compare, case), replicated=replicated, trained=finished)

    def judge_without(
        run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable
    ) -> Iterator[Outcome]:
        return judge_within(run, target, packages)

    return check_of(
        id,
        judge_without if tolerance is None else judge_within,
        text,
        severity=severity,
        scenario=scenario,
        requires=requires,
        explained_by=explained_by,
    )
