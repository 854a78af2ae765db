from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.facts import gpus, host, smoke_run
from helpers.judging import TODAY, compute_check
from kdoctor.check import Check, check
from kdoctor.engine.judge import PlannedCheck, Rules, conclude, judge, unused_waivers
from kdoctor.engine.report import Conclusion, Result, Waiver
from kdoctor.facts import FactGroup, Gpus, Host, SmokeRun, SmokeRuns, Unavailable
from kdoctor.model import (
    Action,
    Assumptions,
    Evidence,
    Finding,
    GpuAssumption,
    NotApplicable,
    Outcome,
    Remedy,
    Rollback,
    Severity,
    Status,
    Unjudged,
)

GOOD = Evidence(subject="it", observed="good")
BLIND = Unjudged(subject="the rest", reason="not read")
NOTHING_HERE = NotApplicable(reason="there is one GPU")


def bad(subject: str = "it") -> Finding:
    return Finding(
        subject=subject,
        observed="bad",
        expected="good",
        remedy=Remedy(summary="Mend it.", action=Action.CONFIGURE),
        rollback=Rollback.nothing("nothing changes"),
    )


def yielding(*outcomes: Outcome, check_id: str = "host.it", requires: Sequence[str] = (), gpus: bool = False) -> Check:
    @check(check_id, severity=Severity.ERROR, requires=requires, needs_gpus=gpus)
    def function(host: Host) -> Iterator[Outcome]:
        """It is good.

        Why: it must be.
        Remedy: mend it.
        Source: https://example.org
        """
        yield from outcomes

    return function


def waiver(subject: str = "*", expires: date = TODAY, check_id: str = "host.it") -> Waiver:
    return Waiver(check=check_id, subject=subject, reason="known", owner="ops", expires=expires)


def run(*checks: Check, rules: Rules | None = None, **planned: object) -> dict[str, Result]:
    plan = [PlannedCheck(check=item, severity=item.severity, **planned) for item in checks]  # type: ignore[arg-type]
    return {result.id: result for result in judge(plan, {Host: host()}, rules or Rules(today=TODAY))}


def result(status: Status, severity: Severity = Severity.ERROR, **changes: object) -> Result:
    return Result(id="host.it", family="host", title="t", status=status, severity=severity, **changes)  # type: ignore[arg-type]


# --- one check ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcomes", "status", "reason"),
    [
        ([GOOD], Status.PASS, None),
        ([bad()], Status.FAIL, None),
        ([GOOD, bad()], Status.FAIL, None),
        ([bad(), BLIND], Status.FAIL, "the rest: not read"),
        ([BLIND], Status.UNKNOWN, "the rest: not read"),
        ([GOOD, BLIND], Status.UNKNOWN, "the rest: not read"),
        ([BLIND, NOTHING_HERE], Status.UNKNOWN, "the rest: not read"),
        ([NOTHING_HERE], Status.SKIP, "there is one GPU"),
        ([GOOD, NOTHING_HERE], Status.PASS, None),
        ([], Status.UNKNOWN, "the check evaluated nothing"),
    ],
)
def test_the_status_follows_from_the_outcomes(outcomes: list[Outcome], status: Status, reason: str | None) -> None:
    judged = run(yielding(*outcomes))["host.it"]
    assert (judged.status, judged.reason) == (status, reason)


@given(st.lists(st.sampled_from([GOOD, bad(), BLIND, NOTHING_HERE])))
def test_a_pass_needs_evidence_and_nothing_bad_or_unjudged(outcomes: list[Outcome]) -> None:
    status = run(yielding(*outcomes))["host.it"].status
    clean = GOOD in outcomes and BLIND not in outcomes and bad() not in outcomes
    assert (status is Status.PASS) == clean
    assert (status is Status.FAIL) == (bad() in outcomes)


def test_evidence_is_kept_on_a_failure_too() -> None:
    judged = run(yielding(GOOD, bad("other")))["host.it"]
    assert judged.evidence == (GOOD,)
    assert [item.finding.subject for item in judged.findings] == ["other"]


def test_a_group_that_was_not_collected_makes_the_check_unknown() -> None:
    judged = compute_check(yielding(GOOD))
    assert (judged.status, judged.reason) == (Status.UNKNOWN, "no facts about host were collected")


def test_an_unavailable_group_gives_its_reason() -> None:
    judged = compute_check(yielding(GOOD), missing={Host: "the probe hung"})
    assert (judged.status, judged.reason) == (Status.UNKNOWN, "the probe hung")


def test_a_check_that_copes_is_given_the_unavailable_group() -> None:
    @check("gpu.it", severity=Severity.ERROR)
    def copes(host: Host | Unavailable) -> Iterator[Outcome]:
        """It is good.

        Why: it must be.
        Remedy: mend it.
        Source: https://example.org
        """
        yield Evidence(subject="it", observed="told" if isinstance(host, Host) else host.unavailable)

    assert compute_check(copes, missing={Host: "no sysfs"}).evidence[0].observed == "no sysfs"
    assert compute_check(copes, host()).evidence[0].observed == "told"


def test_a_check_is_given_its_assumptions_and_its_parameters() -> None:
    @check("host.it", severity=Severity.ERROR)
    def wants(assumptions: Assumptions, *, least: int = 1) -> Iterator[Outcome]:
        """It is good.

        Why: it must be.
        Remedy: mend it.
        Source: https://example.org
        """
        yield Evidence(subject="it", observed=f"{assumptions.python} {least}")

    assert compute_check(wants).evidence[0].observed == "None 1"
    assert compute_check(wants, assumptions=Assumptions(python=">=3.10"), least=5).evidence[0].observed == ">=3.10 5"


def test_a_check_that_crashes_is_unknown_and_keeps_what_it_had_found() -> None:
    @check("host.it", severity=Severity.ERROR)
    def crashes(host: Host, *, first: bool = False) -> Iterator[Outcome]:
        """It is good.

        Why: it must be.
        Remedy: mend it.
        Source: https://example.org
        """
        yield bad() if first else GOOD
        raise ValueError("no such thing")

    judged = compute_check(crashes, host())
    assert judged.status is Status.UNKNOWN
    assert judged.reason == "host.it: the check itself failed: ValueError: no such thing"
    assert compute_check(crashes, host(), first=True).status is Status.FAIL


def test_a_check_that_returns_no_outcomes_at_all_is_unknown() -> None:
    @check("host.it", severity=Severity.ERROR)
    def forgets(host: Host) -> Iterator[Outcome]:
        """It is good.

        Why: it must be.
        Remedy: mend it.
        Source: https://example.org
        """
        return None  # type: ignore[return-value] # the defect under test

    assert compute_check(forgets, host()).status is Status.UNKNOWN


# --- smoke runs --------------------------------------------------------------------------------------------------


@check("smoke.it", severity=Severity.ERROR, scenario="smoke.baseline")
def trained(run: SmokeRun) -> Iterator[Outcome]:
    """It trains.

    Why: it must.
    Remedy: mend it.
    Source: https://example.org
    """
    yield Evidence(subject=run.scenario, observed="trained")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, "no smoke training was run"),
        ({SmokeRuns: Unavailable(unavailable="--no-smoke")}, "--no-smoke"),
        ({SmokeRuns: SmokeRuns()}, "scenario smoke.baseline was not run"),
        ({SmokeRuns: SmokeRuns(runs={"smoke.other": smoke_run("smoke.other")})}, "scenario smoke.baseline was not run"),
        ({SmokeRuns: SmokeRuns(runs={"smoke.baseline": Unavailable(unavailable="no child")})}, "no child"),
    ],
)
def test_a_scenario_that_was_not_run_is_unknown(facts: dict[type[FactGroup], FactGroup], reason: str) -> None:
    plan = [PlannedCheck(check=trained, severity=Severity.ERROR)]
    (judged,) = judge(plan, facts, Rules(today=TODAY))
    assert (judged.status, judged.reason) == (Status.UNKNOWN, reason)


def test_a_check_is_given_the_run_of_its_scenario() -> None:
    assert compute_check(trained, smoke_run("smoke.baseline")).evidence[0].subject == "smoke.baseline"


# --- waivers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waivers", "status"),
    [
        ([waiver()], Status.SKIP),
        ([waiver(expires=TODAY - timedelta(days=1))], Status.FAIL),
        ([waiver(expires=TODAY - timedelta(days=9)), waiver(expires=TODAY)], Status.SKIP),
        ([waiver("GPU 1*")], Status.FAIL),
        ([waiver("G*")], Status.SKIP),
        ([waiver("g*")], Status.FAIL),
        ([waiver(check_id="host.other")], Status.FAIL),
        ([], Status.FAIL),
    ],
)
def test_a_waiver_covers_its_check_and_subjects_through_its_last_day(waivers: list[Waiver], status: Status) -> None:
    rules = Rules(today=TODAY, waivers=tuple(waivers))
    assert run(yielding(bad("GPU 0 (0000:10:00.0)")), rules=rules)["host.it"].status is status


@pytest.mark.parametrize(
    ("outcomes", "subject", "is_unused"),
    [
        ((GOOD,), "*", True),
        ((bad("GPU 1"),), "GPU 1", False),
        ((bad("GPU 1"),), "GPU 2", True),
        ((bad("GPU 1"), GOOD), "GPU 2", True),
        ((BLIND,), "*", False),
        ((GOOD, BLIND), "*", False),
        ((NOTHING_HERE,), "*", False),
        ((), "*", False),
    ],
)
def test_a_waiver_is_unused_where_its_check_was_judged_whole_and_it_covers_nothing(
    outcomes: tuple[Outcome, ...],
    subject: str,
    is_unused: bool,  # noqa: FBT001 - a column of the table
) -> None:
    results = run(yielding(*outcomes), rules=Rules(today=TODAY)).values()
    old = waiver(subject, expires=TODAY - timedelta(days=1))
    assert unused_waivers(results, [old]) == ((old,) if is_unused else ())


def test_a_waiver_for_one_subject_leaves_the_others_failing() -> None:
    judged = run(yielding(bad("a"), bad("b")), rules=Rules(today=TODAY, waivers=(waiver("a"),)))["host.it"]
    assert judged.status is Status.FAIL
    assert [item.counts for item in judged.findings] == [False, True]


def test_an_expired_waiver_is_shown_and_does_not_count() -> None:
    old = waiver(expires=TODAY - timedelta(days=1))
    (finding,) = run(yielding(bad()), rules=Rules(today=TODAY, waivers=(old,)))["host.it"].findings
    assert (finding.waiver, finding.expired, finding.counts) == (old, True, True)


def test_waived_findings_do_not_hide_what_could_not_be_judged() -> None:
    judged = run(yielding(bad(), BLIND), rules=Rules(today=TODAY, waivers=(waiver(),)))["host.it"]
    assert judged.status is Status.UNKNOWN


def test_a_waived_check_is_no_pass() -> None:
    judged = run(yielding(bad(), GOOD), rules=Rules(today=TODAY, waivers=(waiver(),)))["host.it"]
    assert (judged.status, judged.reason) == (Status.SKIP, "every finding is waived")


def test_a_pass_says_what_was_waived() -> None:
    waived = run(yielding(bad()), rules=Rules(today=TODAY, waivers=(waiver(),)))["host.it"]
    passed = run(yielding(GOOD, check_id="host.other"))["host.other"]
    assert conclude([waived, passed]).reason == "nothing that stops the job; host.it is waived"
    assert conclude([passed]).reason == "everything that was asked for passed"


# --- planning: deselected, no GPUs, prerequisites ----------------------------------------------------------------


def test_a_deselected_check_is_skipped_with_the_reason_and_blocks_nothing() -> None:
    first, second = yielding(bad(), check_id="host.first"), yielding(GOOD, requires=["host.first"])
    plan = [
        PlannedCheck(check=first, severity=Severity.ERROR, deselected="--skip host.first"),
        PlannedCheck(check=second, severity=Severity.ERROR),
    ]
    one, two = judge(plan, {Host: host()}, Rules(today=TODAY))
    assert (one.status, one.reason) == (Status.SKIP, "--skip host.first")
    assert two.status is Status.PASS


def test_checks_of_gpus_are_skipped_where_none_are_expected() -> None:
    for count, status in ((0, Status.SKIP), (None, Status.FAIL), (2, Status.FAIL)):
        assumptions = Assumptions(gpus=GpuAssumption(count=count))
        judged = run(yielding(bad(), gpus=True), rules=Rules(today=TODAY, assumptions=assumptions))["host.it"]
        assert judged.status is status


def test_a_failed_prerequisite_blocks_all_that_need_it_and_is_named() -> None:
    first = yielding(bad(), check_id="host.first")
    second = yielding(GOOD, check_id="host.second", requires=["host.first"])
    third = yielding(GOOD, check_id="host.third", requires=["host.second"])
    judged = run(third, second, first)
    assert list(judged) == ["host.third", "host.second", "host.first"]
    for name in ("host.second", "host.third"):
        assert judged[name].status is Status.SKIP
        assert judged[name].blocked_by == "host.first"
        assert judged[name].reason == "needs host.first, which failed"


@pytest.mark.parametrize("outcome", [GOOD, BLIND, NOTHING_HERE])
def test_a_prerequisite_that_did_not_fail_does_not_block(outcome: Outcome) -> None:
    judged = run(yielding(outcome, check_id="host.first"), yielding(GOOD, requires=["host.first"]))
    assert judged["host.it"].status is Status.PASS


def test_a_waived_prerequisite_does_not_block() -> None:
    rules = Rules(today=TODAY, waivers=(waiver(check_id="host.first"),))
    judged = run(yielding(bad(), check_id="host.first"), yielding(GOOD, requires=["host.first"]), rules=rules)
    assert judged["host.it"].status is Status.PASS


def test_a_prerequisite_that_is_not_planned_does_not_block() -> None:
    assert run(yielding(GOOD, requires=["host.absent"]))["host.it"].status is Status.PASS


def test_checks_that_require_each_other_in_a_circle_are_an_error() -> None:
    first = yielding(GOOD, check_id="host.first", requires=["host.second"])
    second = yielding(GOOD, check_id="host.second", requires=["host.first"])
    with pytest.raises(ValueError, match=r"host\.first -> host\.second -> host\.first"):
        run(first, second)


def test_the_checklists_severity_counts() -> None:
    plan = [PlannedCheck(check=yielding(bad()), severity=Severity.INFO)]
    (judged,) = judge(plan, {Host: host()}, Rules(today=TODAY))
    assert judged.severity is Severity.INFO


@pytest.mark.parametrize(
    ("accept", "allow", "accepted"),
    [(None, False, None), ("in a container", False, "in a container"), (None, True, "--allow-unknown")],
)
def test_an_unknown_is_accepted_by_the_checklist_or_the_option(
    accept: str | None,
    allow: bool,  # noqa: FBT001 - a table's column
    accepted: str | None,
) -> None:
    rules = Rules(today=TODAY, allow_unknown=allow)
    for outcomes in ([BLIND], []):
        judged = run(yielding(*outcomes), rules=rules, accept_unknown=accept)["host.it"]
        assert (judged.status, judged.accepted) == (Status.UNKNOWN, accepted)
    assert run(yielding(bad()), rules=rules, accept_unknown=accept)["host.it"].accepted is None


def test_an_unavailable_group_is_accepted_too() -> None:
    plan = [PlannedCheck(check=yielding(GOOD), severity=Severity.ERROR, accept_unknown="known")]
    (judged,) = judge(plan, {Gpus: gpus()}, Rules(today=TODAY))
    assert (judged.status, judged.accepted) == (Status.UNKNOWN, "known")


# --- the verdict -------------------------------------------------------------------------------------------------

PASS, FAIL, SKIP, UNKNOWN = (Status.PASS, Status.FAIL, Status.SKIP, Status.UNKNOWN)
ERROR, WARNING, INFO = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@pytest.mark.parametrize(
    ("results", "fail_on", "code"),
    [
        ([], ERROR, 3),
        ([result(PASS)], ERROR, 0),
        ([result(SKIP)], ERROR, 3),
        ([result(PASS), result(SKIP)], ERROR, 0),
        ([result(PASS), result(FAIL)], ERROR, 1),
        ([result(FAIL), result(UNKNOWN)], ERROR, 1),
        ([result(PASS), result(UNKNOWN)], ERROR, 3),
        ([result(PASS), result(UNKNOWN, accepted="known")], ERROR, 0),
        ([result(UNKNOWN, accepted="known")], ERROR, 3),
        ([result(PASS), result(FAIL, WARNING)], ERROR, 0),
        ([result(PASS), result(UNKNOWN, WARNING)], ERROR, 0),
        ([result(PASS), result(FAIL, WARNING)], WARNING, 1),
        ([result(PASS), result(UNKNOWN, WARNING)], WARNING, 3),
        ([result(PASS), result(FAIL, INFO)], WARNING, 0),
        ([result(PASS), result(FAIL, INFO)], INFO, 1),
        ([result(PASS), result(SKIP, blocked_by="host.first")], ERROR, 3),
        ([result(PASS), result(SKIP, WARNING, blocked_by="host.first")], ERROR, 0),
        ([result(FAIL, WARNING)], ERROR, 0),
        ([result(UNKNOWN, WARNING)], ERROR, 3),
    ],
)
def test_exit_codes(results: list[Result], fail_on: Severity, code: int) -> None:
    verdict = conclude(results, fail_on)
    assert verdict.exit_code == code
    assert verdict.conclusion is {0: Conclusion.PASS, 1: Conclusion.FAIL, 3: Conclusion.UNKNOWN}[code]
    assert verdict.reason


@pytest.mark.parametrize(
    ("statuses", "conclusion"), [([], Conclusion.UNKNOWN), ([PASS], Conclusion.UNKNOWN), ([FAIL], Conclusion.FAIL)]
)
def test_an_interrupted_run_never_passes(statuses: list[Status], conclusion: Conclusion) -> None:
    verdict = conclude([result(status) for status in statuses], interrupted=True)
    assert (verdict.conclusion, verdict.exit_code) == (conclusion, 130)


def test_only_what_passed_with_nothing_else_of_weight_exits_zero() -> None:
    for statuses in product(Status, repeat=3):
        code = conclude([result(status) for status in statuses]).exit_code
        assert (code == 0) == (PASS in statuses and FAIL not in statuses and UNKNOWN not in statuses)
        assert (code == 1) == (FAIL in statuses)


@pytest.mark.parametrize(
    ("statuses", "code"), [((SKIP, SKIP), 3), ((SKIP, PASS), 0), ((SKIP, UNKNOWN), 3), ((SKIP, FAIL), 1)]
)
def test_a_run_whose_trainings_were_all_skipped_is_no_pass(statuses: tuple[Status, Status], code: int) -> None:
    trainings = [replace(result(status), id=f"smoke.{n}") for n, status in enumerate(statuses)]
    verdict = conclude([result(PASS), *trainings], trainings={item.id for item in trainings})
    assert verdict.exit_code == code
    assert (verdict.reason == "nothing was trained: smoke.0, smoke.1 skipped") == (statuses == (SKIP, SKIP))
    assert conclude([result(PASS), *trainings[:1]]).exit_code == 0  # no training was asked for


def test_the_verdict_names_the_failed_checks_and_counts_the_rest() -> None:
    verdict = conclude([result(FAIL)] * 5)
    assert verdict.reason == "host.it, host.it, host.it and 2 more failed"


def test_a_pass_does_not_hide_a_failed_warning() -> None:
    assert "host.it failed" in conclude([result(PASS), result(FAIL, WARNING)]).reason
