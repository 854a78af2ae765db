from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import ClassVar

import pytest

from helpers.cases import cases
from helpers.catalogs import described, host_check, smoke_check
from helpers.facts import environment, gpu, gpus, host, lost_gpu, smoke_run
from helpers.judging import TODAY
from kdoctor.check import Check
from kdoctor.engine.judge import PlannedCheck, Rules, asks_for, judge, unused_waivers
from kdoctor.engine.report import Result, Waiver
from kdoctor.facts import Environment, FactGroup, Gpus, Host, SmokeRun, SmokeRuns, Unavailable
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import (
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
from kdoctor.testing import compute_check

GOOD = Evidence(subject="it", observed="good")
BLIND = Unjudged(subject="the rest", reason="not read")
NOTHING_HERE = NotApplicable(reason="there is one GPU")


def bad(subject: str = "it") -> Finding:
    return Finding(
        subject=subject,
        observed="bad",
        expected="good",
        remedy=Remedy.configure("Fix it."),
        rollback=Rollback.nothing("nothing changes"),
    )


def yielding(*outcomes: Outcome, check_id: str = "host.it", requires: Sequence[str] = (), gpus: bool = False) -> Check:
    @described(check_id, requires=requires, needs_gpus=gpus)
    def function(host: Host) -> Iterator[Outcome]:
        yield from outcomes

    return function


def waiver(subject: str = "*", expires: date = TODAY, check_id: str = "host.it") -> Waiver:
    return Waiver(check=check_id, subject=subject, reason="known", owner="ops", expires=expires)


def run(*checks: Check, rules: Rules | None = None, **planned: object) -> dict[str, Result]:
    plan = [PlannedCheck(check=item, severity=item.severity, **planned) for item in checks]  # type: ignore[arg-type]
    return {result.id: result for result in judge(plan, {Host: host()}, rules or Rules(today=TODAY))}


# --- one check ---------------------------------------------------------------------------------------------------


@cases(
    ([GOOD], Status.PASS, None),
    ([bad()], Status.FAIL, None),
    ([GOOD, bad()], Status.FAIL, None),
    ([bad(), BLIND], Status.FAIL, "the rest: not read"),
    ([BLIND], Status.UNKNOWN, "the rest: not read"),
    ([GOOD, BLIND], Status.UNKNOWN, "the rest: not read"),
    ([BLIND, NOTHING_HERE], Status.UNKNOWN, "the rest: not read"),
    ([NOTHING_HERE], Status.SKIP, "there is one GPU"),
    ([GOOD, NOTHING_HERE], Status.PASS, None),
    ([], Status.UNKNOWN, "the check found nothing to evaluate"),
)
def test_outcomes_determine_status(outcomes: list[Outcome], status: Status, reason: str | None) -> None:
    judged = run(yielding(*outcomes))["host.it"]
    assert (judged.status, judged.reason) == (status, reason)


def test_failed_check_keeps_evidence() -> None:
    judged = run(yielding(GOOD, bad("other")))["host.it"]
    assert judged.evidence == (GOOD,)
    assert [item.finding.subject for item in judged.findings] == ["other"]


def test_missing_group_is_unknown() -> None:
    judged = compute_check(yielding(GOOD))
    assert (judged.status, judged.reason) == (Status.UNKNOWN, "no facts about host were collected")


def test_unavailable_group_gives_reason() -> None:
    judged = compute_check(yielding(GOOD), missing={Host: "the probe hung"})
    assert (judged.status, judged.reason) == (Status.UNKNOWN, "the probe hung")


def test_tolerant_check_receives_unavailable_group() -> None:
    @described("gpu.it")
    def copes(host: Host | Unavailable) -> Iterator[Outcome]:
        yield Evidence(subject="it", observed="available" if isinstance(host, Host) else host.unavailable)

    assert compute_check(copes, missing={Host: "no sysfs"}).evidence[0].observed == "no sysfs"
    assert compute_check(copes, host()).evidence[0].observed == "available"


def test_check_receives_assumptions_and_parameters() -> None:
    @described("host.it")
    def wants(assumptions: Assumptions, *, least: int = 1) -> Iterator[Outcome]:
        yield Evidence(subject="it", observed=f"{assumptions.python} {least}")

    assert compute_check(wants).evidence[0].observed == "None 1"
    assert compute_check(wants, assumptions=Assumptions(python=">=3.10"), least=5).evidence[0].observed == ">=3.10 5"


@pytest.mark.parametrize(("days", "is_old"), [(90, False), (91, True)])
def test_gap_of_an_old_matrix_states_its_age(days: int, *, is_old: bool) -> None:
    matrix = load_matrix(environ={})

    @described("host.it")
    def it(host: Host, matrix: VersionMatrix) -> Iterator[Outcome]:
        yield BLIND

    rules = Rules(today=date.fromisoformat(matrix.updated) + timedelta(days=days), matrix=matrix)
    judged = run(it, rules=rules)["host.it"]
    assert judged.status is Status.UNKNOWN
    assert (f"{days} days old" in (judged.reason or "")) == is_old


def crash() -> Iterator[Outcome]:
    raise ValueError("no such thing")


def forget_to_return() -> Iterator[Outcome]:
    yield None  # type: ignore[misc]


def return_instead() -> Iterator[Outcome]:
    yield from ()
    return bad()  # type: ignore[return-value]


def leave() -> Iterator[Outcome]:
    raise SystemExit(0)


def letters() -> Iterator[Outcome]:
    yield replace(bad(), remedy=Remedy.configure("Look.", look="df -h"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("defect", "named"),
    [
        (crash, f"ValueError: no such thing (test_judge.py:{crash.__code__.co_firstlineno + 1})"),
        (forget_to_return, "None"),
        (return_instead, "returned Finding"),
        (leave, "SystemExit"),
        (letters, "Remedy.look: expected a tuple, found the string 'df -h'"),
    ],
)
def test_defective_check_is_unknown_and_keeps_findings(defect: Callable[[], Iterator[Outcome]], named: str) -> None:
    @described("host.it")
    def it(host: Host, *, first: bool = False) -> Iterator[Outcome]:
        yield bad() if first else GOOD
        return (yield from defect())

    judged = run(it)["host.it"]
    assert (judged.status, [item.subject for item in judged.unjudged]) == (Status.UNKNOWN, ["host.it"])
    assert judged.reason
    assert named in judged.reason
    assert run(it, parameters={"first": True})["host.it"].status is Status.FAIL


def test_check_without_generator_is_unknown() -> None:
    @described("host.it")
    def forgets(host: Host) -> Iterator[Outcome]:
        return None  # type: ignore[return-value] # the defect under test

    assert run(forgets)["host.it"].status is Status.UNKNOWN


# --- smoke runs --------------------------------------------------------------------------------------------------


@described("smoke.it", scenario="smoke.baseline")
def trained(run: SmokeRun) -> Iterator[Outcome]:
    yield Evidence(subject=run.scenario, observed="trained")


@cases(
    ({}, "no smoke training was run"),
    ({SmokeRuns: Unavailable(unavailable="--no-smoke")}, "--no-smoke"),
    ({SmokeRuns: SmokeRuns()}, "scenario smoke.baseline was not run"),
    ({SmokeRuns: SmokeRuns(runs={"smoke.other": smoke_run("smoke.other")})}, "scenario smoke.baseline was not run"),
    ({SmokeRuns: SmokeRuns(runs={"smoke.baseline": Unavailable(unavailable="no child")})}, "no child"),
)
def test_missing_scenario_run_is_unknown(facts: dict[type[FactGroup], FactGroup], reason: str) -> None:
    plan = [PlannedCheck(check=trained, severity=Severity.ERROR)]
    (judged,) = judge(plan, facts, Rules(today=TODAY))
    assert (judged.status, judged.reason) == (Status.UNKNOWN, reason)


def test_check_receives_run_of_its_scenario() -> None:
    assert compute_check(trained, smoke_run("smoke.baseline")).evidence[0].subject == "smoke.baseline"


# --- waivers -----------------------------------------------------------------------------------------------------


@cases(
    ([waiver()], Status.SKIP),
    ([waiver(expires=TODAY - timedelta(days=1))], Status.FAIL),
    ([waiver(expires=TODAY - timedelta(days=9)), waiver(expires=TODAY)], Status.SKIP),
    ([waiver("GPU 1*")], Status.FAIL),
    ([waiver("G*")], Status.SKIP),
    ([waiver("g*")], Status.FAIL),
    ([waiver(check_id="host.other")], Status.FAIL),
    ([], Status.FAIL),
)
def test_waiver_covers_check_and_subjects_through_last_day(waivers: list[Waiver], status: Status) -> None:
    rules = Rules(today=TODAY, waivers=tuple(waivers))
    assert run(yielding(bad("GPU 0 (0000:10:00.0)")), rules=rules)["host.it"].status is status


@cases(
    ((GOOD,), "*", True),
    ((bad("GPU 1"),), "GPU 1", False),
    ((bad("GPU 1"),), "GPU*", False),
    ((bad("GPU 1"),), "GPU 2", True),
    ((bad("GPU 1"), GOOD), "GPU 2", True),
    ((BLIND,), "*", False),
    ((GOOD, BLIND), "*", False),
    ((NOTHING_HERE,), "*", False),
    ((), "*", False),
)
def test_unused_waiver_requires_complete_check(
    outcomes: tuple[Outcome, ...],
    subject: str,
    is_unused: bool,  # noqa: FBT001 - a column of the table
) -> None:
    results = run(yielding(*outcomes), rules=Rules(today=TODAY)).values()
    old = waiver(subject, expires=TODAY - timedelta(days=1))
    assert unused_waivers(results, [old]) == ((old,) if is_unused else ())


def test_waiver_of_one_subject_leaves_others_failing() -> None:
    judged = run(yielding(bad("a"), bad("b")), rules=Rules(today=TODAY, waivers=(waiver("a"),)))["host.it"]
    assert judged.status is Status.FAIL
    assert [item.counts for item in judged.findings] == [False, True]


def test_expired_waiver_is_kept_and_does_not_count() -> None:
    old = waiver(expires=TODAY - timedelta(days=1))
    (finding,) = run(yielding(bad()), rules=Rules(today=TODAY, waivers=(old,)))["host.it"].findings
    assert (finding.waiver, finding.expired, finding.counts) == (old, True, True)


def test_waiver_does_not_hide_unjudged_subjects() -> None:
    judged = run(yielding(bad(), BLIND), rules=Rules(today=TODAY, waivers=(waiver(),)))["host.it"]
    assert judged.status is Status.UNKNOWN


def test_waived_check_is_skipped() -> None:
    judged = run(yielding(bad(), GOOD), rules=Rules(today=TODAY, waivers=(waiver(),)))["host.it"]
    assert (judged.status, judged.findings[0].counts) == (Status.SKIP, False)


# --- planning: deselected, no GPUs, prerequisites ----------------------------------------------------------------


def test_deselected_check_is_skipped_and_blocks_nothing() -> None:
    first, second = yielding(bad(), check_id="host.first"), yielding(GOOD, requires=["host.first"])
    plan = [
        PlannedCheck(check=first, severity=Severity.ERROR, deselected="--skip host.first"),
        PlannedCheck(check=second, severity=Severity.ERROR),
    ]
    one, two = judge(plan, {Host: host()}, Rules(today=TODAY))
    assert (one.status, one.reason) == (Status.SKIP, "--skip host.first")
    assert two.status is Status.PASS


def test_gpu_checks_are_skipped_without_expected_gpus() -> None:
    for count, status in ((0, Status.SKIP), (None, Status.FAIL), (2, Status.FAIL)):
        assumptions = Assumptions(gpus=GpuAssumption(count=count))
        judged = run(yielding(bad(), gpus=True), rules=Rules(today=TODAY, assumptions=assumptions))["host.it"]
        assert judged.status is status


def test_failed_prerequisite_blocks_dependent_checks() -> None:
    first = yielding(bad(), check_id="host.first")
    second = yielding(GOOD, check_id="host.second", requires=["host.first"])
    third = yielding(GOOD, check_id="host.third", requires=["host.second"])
    judged = run(third, second, first)
    assert list(judged) == ["host.third", "host.second", "host.first"]
    for name in ("host.second", "host.third"):
        assert judged[name].status is Status.SKIP
        assert judged[name].blocked_by == "host.first"
        assert "host.first" in (judged[name].reason or "")


@pytest.mark.parametrize("outcome", [GOOD, BLIND, NOTHING_HERE])
def test_prerequisite_that_did_not_fail_does_not_block(outcome: Outcome) -> None:
    judged = run(yielding(outcome, check_id="host.first"), yielding(GOOD, requires=["host.first"]))
    assert judged["host.it"].status is Status.PASS


def test_waived_prerequisite_does_not_block() -> None:
    rules = Rules(today=TODAY, waivers=(waiver(check_id="host.first"),))
    judged = run(yielding(bad(), check_id="host.first"), yielding(GOOD, requires=["host.first"]), rules=rules)
    assert judged["host.it"].status is Status.PASS


def test_planned_severity_is_used() -> None:
    plan = [PlannedCheck(check=yielding(bad()), severity=Severity.INFO)]
    (judged,) = judge(plan, {Host: host()}, Rules(today=TODAY))
    assert judged.severity is Severity.INFO


def test_unplanned_prerequisite_does_not_block() -> None:
    assert run(yielding(GOOD, requires=["host.absent"]))["host.it"].status is Status.PASS


def test_cyclic_prerequisites_are_an_error() -> None:
    first = yielding(GOOD, check_id="host.first", requires=["host.second"])
    second = yielding(GOOD, check_id="host.second", requires=["host.first"])
    with pytest.raises(ValueError, match=r"host\.first -> host\.second -> host\.first"):
        run(first, second)


@cases((None, False, None), ("in a container", False, "in a container"), (None, True, "--allow-unknown"))
def test_unknown_is_accepted_by_checklist_or_option(
    accept: str | None,
    allow: bool,  # noqa: FBT001 - a table's column
    accepted: str | None,
) -> None:
    rules = Rules(today=TODAY, allow_unknown=allow)
    for outcomes in ([BLIND], []):
        judged = run(yielding(*outcomes), rules=rules, accept_unknown=accept)["host.it"]
        assert (judged.status, judged.accepted) == (Status.UNKNOWN, accepted)
    assert run(yielding(bad()), rules=rules, accept_unknown=accept)["host.it"].accepted is None


# --- GPUs that CUDA_VISIBLE_DEVICES hides ------------------------------------------------------------------------


def on_four_gpus(*outcomes: Outcome, mask: str | None, odd: str | None = None, **variables: str) -> Result:
    """The result of a check with these outcomes, where GPU 2 is lost."""
    found = gpus(4, gpu(0), gpu(1), lost_gpu(2), gpu(3, **({"name": odd} if odd else {})))
    settings = variables if mask is None else {"CUDA_VISIBLE_DEVICES": mask, **variables}
    item = yielding(*outcomes)
    plan = [PlannedCheck(check=item, severity=item.severity)]
    facts = {Host: host(), Gpus: found, Environment: environment(**settings)}
    return judge(plan, facts, Rules(today=TODAY))[0]


LOST, FINE = bad("GPU 2"), Evidence(subject=gpu(0).subject, observed="good")
UNREAD = Unjudged(subject="GPU 2", reason="not read")


@cases(
    ([LOST, FINE], "0,1,3", Status.PASS),
    ([LOST], "0,1,3", Status.SKIP),
    ([UNREAD], "0,1,3", Status.SKIP),
    ([LOST, UNREAD, FINE], "0,1,3", Status.PASS),
    ([LOST, bad(gpu(3).subject)], "0,1,3", Status.FAIL),
    ([LOST, Evidence(subject="GPU 2", observed="good")], "0,1,3", Status.SKIP),
    ([LOST, FINE], None, Status.FAIL),
    ([UNREAD, FINE], None, Status.UNKNOWN),
    ([LOST, FINE], "0,1,2", Status.FAIL),
    ([LOST, FINE], "", Status.FAIL),
    ([LOST, FINE], "0,1,9", Status.FAIL),
    ([LOST, FINE], "MIG-1", Status.FAIL),
    ([LOST, FINE], "GPU-of-another-machine", Status.FAIL),
    ([bad(gpu(3).subject), FINE], "0,1", Status.PASS),
    ([bad(f"GPU at {gpu(3).bus_id}"), FINE], "0,1", Status.PASS),
    ([bad("GPU 0 - GPU 3"), FINE], "0,1", Status.PASS),
    ([bad("GPU 0 - GPU 1"), FINE], "0,1", Status.FAIL),
    ([bad("GPU 30"), FINE], "0,1", Status.FAIL),
)
def test_hidden_gpus_do_not_count(outcomes: list[Outcome], mask: str | None, status: Status) -> None:
    assert on_four_gpus(*outcomes, mask=mask).status is status


def test_hidden_finding_stays_in_the_result() -> None:
    (judged,) = on_four_gpus(LOST, FINE, mask="0,1,3").findings
    assert (judged.hidden, judged.counts) == (True, False)


def test_indices_of_different_models_hide_only_in_bus_order() -> None:
    assert on_four_gpus(LOST, FINE, mask="0,1,3", odd="NVIDIA T4").status is Status.FAIL
    in_order = on_four_gpus(LOST, FINE, mask="0,1,3", odd="NVIDIA T4", CUDA_DEVICE_ORDER="PCI_BUS_ID")
    assert in_order.status is Status.PASS


@dataclass(frozen=True, kw_only=True)
class Room(FactGroup):
    """What output of other tools does not contain."""

    group: ClassVar[str] = "room"
    unrecorded: ClassVar[str] = "the recording does not say where the machine is"


@described("room.it", severity=Severity.WARNING)
def of_room(room: Room) -> Iterator[Outcome]:
    yield Evidence(subject="room", observed=room.group)


@cases(
    ({}, Status.SKIP),  # output of other tools
    ({Gpus: gpus(1)}, Status.SKIP),
    ({Environment: environment()}, Status.UNKNOWN),  # a snapshot of an older kdoctor
    ({Room: Unavailable(unavailable="the probe hung")}, Status.UNKNOWN),
    ({Room: Room()}, Status.PASS),
)
def test_check_of_what_output_does_not_contain_is_skipped(
    facts: dict[type[FactGroup], FactGroup | Unavailable], status: Status
) -> None:
    (result,) = judge([PlannedCheck(check=of_room, severity=Severity.WARNING)], facts, Rules(today=TODAY))
    assert result.status is status
    assert result.status is Status.PASS or result.reason


# --- GPUs that are not there, and what a plan asks for -------------------------------------------------------------


@cases(
    ("gpu.it", [GOOD], 0, Status.SKIP),
    ("topology.it", [], 0, Status.SKIP),
    ("gpu.it", [GOOD], 1, Status.PASS),
    ("gpu.it", [bad()], 0, Status.FAIL),
    ("gpu.it", [BLIND], 0, Status.UNKNOWN),
    ("host.it", [GOOD], 0, Status.PASS),
    ("host.it", [], 0, Status.UNKNOWN),
)
def test_check_of_gpus_has_no_subject_without_gpus(
    check_id: str, outcomes: list[Outcome], devices: int, status: Status
) -> None:
    item = yielding(*outcomes, check_id=check_id)
    plan = [PlannedCheck(check=item, severity=item.severity)]
    (result,) = judge(plan, {Host: host(), Gpus: gpus(devices)}, Rules(today=TODAY))
    assert result.status is status
    assert bool(result.evidence) == (status is Status.PASS)


def test_gpus_that_were_only_counted_are_a_subject() -> None:
    plan = [PlannedCheck(check=yielding(GOOD, check_id="gpu.it"), severity=Severity.ERROR)]
    (result,) = judge(plan, {Host: host(), Gpus: replace(gpus(0), count=8)}, Rules(today=TODAY))
    assert result.status is Status.PASS


@cases(
    (False, None, None, True),
    (False, 0, None, True),
    (True, None, None, True),
    (True, 2, None, True),
    (True, 0, None, False),
    (False, None, "not selected", False),
)
def test_plan_asks_for_what_it_will_evaluate(
    *, needs_gpus: bool, count: int | None, deselected: str | None, asked: bool
) -> None:
    item = yielding(GOOD, gpus=needs_gpus)
    rules = Rules(today=TODAY, assumptions=Assumptions(gpus=GpuAssumption(count=count)))
    plan = [PlannedCheck(check=item, severity=item.severity, deselected=deselected)]
    assert asks_for(plan, Host, rules) is asked
    assert not asks_for(plan, Gpus, rules)


def test_check_of_what_was_not_read_is_skipped_if_it_says_so() -> None:
    result = compute_check(host_check(unread="see host.log"), missing={Host: "not read"})
    assert (result.status, result.reason) == (Status.SKIP, "see host.log")


def test_missing_facts_are_explained_by_what_the_check_names() -> None:
    assert compute_check(host_check(), missing={Host: "not read"}).unjudged == ()
    (gap,) = compute_check(host_check(explained_by=["driver.loaded"]), missing={Host: "not read"}).unjudged
    assert (gap.subject, gap.reason, gap.explained_by) == ("host.memory", "not read", ("driver.loaded",))
    (gap,) = compute_check(smoke_check("smoke.it", explained_by=["driver.loaded"])).unjudged
    assert gap.subject == "smoke.baseline"


def test_check_of_releases_is_unknown_without_a_matrix() -> None:
    seen = []

    @described("versions.it")
    def function(matrix: VersionMatrix) -> Iterator[Outcome]:
        seen.append(matrix)
        yield GOOD

    plan = [PlannedCheck(check=function, severity=Severity.ERROR)]
    (judged,) = judge(plan, {}, Rules(today=TODAY))
    assert (judged.status, judged.reason) == (Status.UNKNOWN, "no version matrix was given")
    (judged,) = judge(plan, {}, Rules(today=TODAY, matrix=load_matrix()))
    assert judged.status is Status.PASS
    judge(plan, {Host: host(kernel="5.15.167.4-microsoft-standard-WSL2")}, Rules(today=TODAY, matrix=load_matrix()))
    assert seen == [load_matrix(), load_matrix().at("wsl2")]


@pytest.mark.parametrize(
    ("tried", "status"),
    [(GOOD, Status.PASS), (bad(), Status.UNKNOWN), (Unjudged(subject="it", reason="hung"), Status.UNKNOWN)],
)
def test_what_a_table_does_not_know_is_known_if_the_training_passed(tried: Outcome, status: Status) -> None:
    gap = Unjudged(subject="tensorflow 9", reason="not in the table", answered_by="smoke.tried")
    asking, trying = yielding(gap, check_id="versions.listed"), yielding(tried, check_id="smoke.tried")
    results = run(asking, trying)
    assert results["versions.listed"].status is status
    assert run(asking)["versions.listed"].status is Status.UNKNOWN
    both = yielding(gap, Unjudged(subject="else", reason="unread"), check_id="versions.listed")
    assert run(both, trying)["versions.listed"].status is Status.UNKNOWN


def test_finding_stays_where_the_training_passed() -> None:
    gap = Unjudged(subject="tensorflow 9", reason="not in the table", answered_by="smoke.tried")
    results = run(yielding(gap, bad(), check_id="versions.listed"), yielding(GOOD, check_id="smoke.tried"))
    assert results["versions.listed"].status is Status.FAIL


@pytest.mark.parametrize("judged", [GOOD, bad(), Unjudged(subject="it", reason="hung")])
@pytest.mark.parametrize("severity", Severity)
def test_warning_about_some_jobs_is_evidence_if_the_job_was_judged(judged: Outcome, severity: Severity) -> None:
    general = replace(yielding(bad(), GOOD, check_id="versions.general"), severity=severity)
    answering = replace(yielding(judged, check_id="job.answers"), answers=("versions.general",))
    found = run(general, answering)["versions.general"]
    is_evidence = severity is not Severity.ERROR and not isinstance(judged, Unjudged)
    assert found.status is (Status.PASS if is_evidence else Status.FAIL)
    assert len(found.evidence) == 1 + is_evidence


def test_warning_stays_if_not_everything_was_judged() -> None:
    unread = Unjudged(subject="else", reason="unread")
    general = replace(yielding(bad(), unread, check_id="versions.general"), severity=Severity.WARNING)
    answering = replace(yielding(GOOD, check_id="job.answers"), answers=("versions.general",))
    assert run(general, answering)["versions.general"].status is Status.FAIL
