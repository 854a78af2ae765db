from dataclasses import replace
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.catalogs import small_catalog
from helpers.checklist_texts import ONE_CHECK
from helpers.facts import environment, smoke_case, smoke_run, target
from helpers.locks import RECORDED, lock, node_facts
from helpers.reports import cpu_report, failure, result
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.resolve import Checklist
from kdoctor.engine.report import Report, Result
from kdoctor.lock.document import Accepted, Measure
from kdoctor.lock.facts import Recorded, recorded_facts
from kdoctor.lock.record import make_lock, own_lock, reason_not_recordable
from kdoctor.model import Severity, Status


@pytest.fixture
def checklist(tmp_path: Path) -> Checklist:
    (tmp_path / "job.yaml").write_text(ONE_CHECK)
    return load_checklist(str(tmp_path / "job.yaml"), small_catalog())


def report(*results: Result, **changes: object) -> Report:
    return replace(cpu_report(), results=results, started_at=RECORDED, **changes)  # type: ignore[arg-type]


GOOD = result("host.memory")
FAILED = failure("gpu.free")
UNKNOWN = result("gpu.same-model", Status.UNKNOWN)
BLOCKED = result("gpu.count-expected", Status.SKIP, blocked_by="gpu.free")


@cases(
    ((GOOD,), None),
    ((GOOD, failure("gpu.free", severity=Severity.WARNING)), None),
    ((GOOD, replace(UNKNOWN, accepted="a container")), None),
    ((GOOD, FAILED), "gpu.free failed"),
    ((GOOD, UNKNOWN), "gpu.same-model could not be evaluated"),
    ((GOOD, BLOCKED), "gpu.count-expected could not be evaluated"),
    ((result("host.memory", Status.SKIP),), "nothing was tested"),
    ((), "nothing was tested"),
)
def test_only_a_passing_run_is_recorded(results: tuple[Result, ...], why_not: str | None) -> None:
    assert reason_not_recordable(report(*results)) == why_not


def test_interrupted_run_is_never_recorded() -> None:
    assert reason_not_recordable(report(GOOD, interrupted=True)) == "the run was interrupted"


def test_accepted_failures_are_ignored_and_recorded(checklist: Checklist) -> None:
    accepted = [Accepted(check="gpu.free", reason="a notebook"), Accepted(check="host.memory", reason="x")]
    run = report(GOOD, FAILED, result("host.cpus", Status.SKIP))
    assert reason_not_recordable(run, accepted[1:]) == "gpu.free failed"
    assert reason_not_recordable(run, accepted) is None
    assert reason_not_recordable(report(GOOD, BLOCKED), [Accepted(check=BLOCKED.id, reason="a notebook")]) is None
    assert reason_not_recordable(report(FAILED), accepted) == "nothing was tested"
    made = make_lock(checklist, run, recorded_facts(node_facts()), accepted=accepted)
    assert made.accepted == (accepted[0],)
    assert made.facts["checks"] == {"host.memory": "pass", "gpu.free": "fail"}


def test_measure_within_the_previous_range_keeps_its_number(checklist: Checklist) -> None:
    found = recorded_facts(node_facts())
    name, other = "smoke.baseline/mirrored/final-loss", "smoke.baseline/mirrored/step-seconds"
    near, far = Measure(value=0.4999, low=0.499, high=0.501), Measure(value=9.0, low=8.0, high=10.0)
    previous = lock(measured={name: near, other: far, "gone/x/final-loss": near})
    made = make_lock(checklist, report(GOOD), found, previous=previous)
    assert made.measured[name] == near
    assert made.measured[other] == found.measured[other]
    assert "gone/x/final-loss" not in made.measured


def test_same_machine_gives_the_same_lock_except_for_the_date(checklist: Checklist) -> None:
    one = make_lock(checklist, report(GOOD), recorded_facts(node_facts()))
    later = replace(report(GOOD), started_at="2026-05-01T06:00:00+00:00", duration_s=99.0)
    two = make_lock(checklist, later, recorded_facts(node_facts()), previous=one)
    assert two.model_copy(update={"recorded": one.recorded}) == one


def test_step_keeps_its_number_unless_the_factor_changes(checklist: Checklist) -> None:
    name = "smoke.baseline/mirrored/step-seconds"
    first = make_lock(checklist, report(GOOD), recorded_facts(node_facts()))
    now = node_facts(smoke_run("smoke.baseline", 8, smoke_case(step_s=0.012)))
    again = make_lock(checklist, report(GOOD), recorded_facts(now), previous=first)
    assert again.measured[name] == first.measured[name]
    strict = make_lock(checklist, report(GOOD), recorded_facts(now, slower=1.5), previous=first)
    assert strict.measured[name] == Measure(value=0.012, low=0.008, high=0.018)


def test_milliseconds_of_a_cpu_step_are_not_a_change(checklist: Checklist) -> None:
    def recorded(step_s: float, slower: float = 2.0) -> Recorded:
        case = smoke_case(step_s=step_s)
        return recorded_facts(node_facts(smoke_run("smoke.baseline", 8, case, devices_kind="cpu")), slower=slower)

    name = "smoke.baseline/mirrored/step-seconds"
    first = make_lock(checklist, report(GOOD), recorded(0.0066))
    for step_s in (0.0017, 0.0066, 0.02):
        assert make_lock(checklist, report(GOOD), recorded(step_s), previous=first).measured == first.measured
    for again in (recorded(0.03), recorded(0.0066, slower=3.0)):
        assert make_lock(checklist, report(GOOD), again, previous=first).measured[name] == again.measured[name]


def test_lock_for_the_history_has_paths_and_no_variables_of_the_job(checklist: Checklist) -> None:
    facts = node_facts(target(), environment(SLURM_JOB_ID="7", NCCL_DEBUG="WARN"))
    made = own_lock(checklist, report(GOOD), facts)
    assert made.identifiers
    assert made.facts["python"]["executable"] == "/opt/job/bin/python"
    assert made.facts["environment"] == {"NCCL_DEBUG": "WARN"}


@pytest.mark.parametrize(("slower", "keeps"), [(2.005, True), (2.015, False)])
def test_factor_within_a_percent_is_the_same(checklist: Checklist, slower: float, keeps: bool) -> None:  # noqa: FBT001
    name = "smoke.baseline/mirrored/step-seconds"
    first = make_lock(checklist, report(GOOD), recorded_facts(node_facts()))
    again = make_lock(checklist, report(GOOD), recorded_facts(node_facts(), slower=slower), previous=first)
    assert (again.measured[name] == first.measured[name]) is keeps
