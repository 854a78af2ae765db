"""One function builds every report."""

import ast
import datetime as dt
import re
from pathlib import Path
from types import ModuleType

import pytest

import kdoctor
from helpers.checklist_texts import WITHOUT_TRAININGS
from helpers.command import kdoctor as run_kdoctor
from helpers.facts import cpu_host, environment, gpu, gpus, package, packages
from helpers.judging import TODAY
from kdoctor.catalog.load import load_catalog
from kdoctor.checklist.resolve import Checklist
from kdoctor.cli import check, record, rollback, smoke
from kdoctor.facts import FactGroup, SmokeRuns
from kdoctor.history.record import keep
from kdoctor.lock.facts import recorded_facts
from kdoctor.lock.record import make_lock
from kdoctor.model import Assumptions
from kdoctor.run import assemble
from kdoctor.run.assemble import build_report
from kdoctor.run.measured import visible_gpus
from kdoctor.run.plan import Plan, RunOptions
from kdoctor.run.session import Collected
from kdoctor.snapshot.document import Snapshot, dumps
from kdoctor.snapshot.redaction import Redaction
from kdoctor.testing import fact_table

STARTED = dt.datetime(2030, 1, 2, 3, 4, 5, tzinfo=dt.timezone.utc)


def without_keras() -> FactGroup:
    return packages(*(item for item in packages().installed if item.name != "keras"))


def collected(*changed: FactGroup, recorded: bool = False) -> Collected:
    facts = fact_table(*cpu_host(), *changed)
    return Collected(facts=facts, target="python", started_at=STARTED, duration_s=1.5, from_snapshot=recorded)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "job.yaml").write_text(WITHOUT_TRAININGS)
    return RunOptions(checklist=str(tmp_path / "job.yaml")).plan(load_catalog())


@pytest.mark.parametrize("module", [check, smoke, record, rollback], ids=lambda module: module.__name__)
def test_every_command_calls_the_same_function(module: ModuleType) -> None:
    assert module.build_report is assemble.build_report


def test_reports_are_created_and_changed_nowhere_else() -> None:
    """Only one module calls ``Report(...)`` or ``replace(report, ...)``."""
    folder = Path(kdoctor.__file__).parent
    places = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                first = node.args[0].id if node.args and isinstance(node.args[0], ast.Name) else None
                if node.func.id == "Report" or (node.func.id == "replace" and first == "report"):
                    places.add(str(path.relative_to(folder)))
    assert places == {"run/assemble.py"}


def test_check_and_record_print_the_same_report_of_a_failure(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(WITHOUT_TRAININGS)
    for name, facts in (("good", cpu_host()), ("bad", (*cpu_host(), without_keras()))):
        text = dumps(Snapshot.now(fact_table(*facts)), Redaction(home="", user=""))
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    failing = ("job.yaml", "--snapshot", "bad.json")
    screens = []
    for step in ("without a lock", "with a lock"):
        if step == "with a lock":
            done = run_kdoctor("checklist", "record", "job.yaml", "--snapshot", "good.json", cwd=tmp_path)
            assert done.returncode == 0, done.stderr
        for command in (("check", "--checklist"), ("checklist", "record")):
            done = run_kdoctor(*command, *failing, cwd=tmp_path)
            assert done.returncode == 1
            screens.append(re.sub(r"[\d.]+ s\b|20\d\d-\S+( \S+ UTC)?", "...", done.stdout))
    assert screens[0] == screens[1]
    assert screens[2] == screens[3]
    (called,) = re.findall(r"(\S+ -m kdoctor|\S*kdoctor) rollback --checklist job.yaml --to job.lock.yaml", screens[3])
    assert f"{called} check" in screens[2]
    assert "Check a new recording" in screens[2]
    assert "keras==3.15.1" not in screens[1]


def test_history_gives_the_start_and_findings_of_the_last_passing_run(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDOCTOR_NO_HISTORY", "0")
    monkeypatch.setenv("KDOCTOR_HISTORY", str(tmp_path / "history.sqlite"))
    passed = build_report(collected(), plan, use_history=True)
    assert passed.last_green_at == passed.started_at
    lock = make_lock(plan.checklist, passed, recorded_facts(collected().facts, identifiers=True))
    assert keep(passed, "", {"KDOCTOR_HISTORY": str(tmp_path / "history.sqlite")}, lambda: lock) is None
    assert build_report(collected(), plan, use_history=True).drift is None, "options explain what is different"
    failed = build_report(collected(without_keras()), plan, use_history=True)
    assert failed.last_green_at == passed.started_at
    assert failed.drift
    assert failed.drift.lock == "run 1 of the history"
    assert "--to last-passing" in str(failed.plan)
    other = build_report(collected(packages(*map(package, "abcdefghijkl"))), plan, use_history=True)
    assert (other.drift is not None, "rollback" in str(other.plan)) == (True, False)  # most packages differ from it
    from_snapshot = build_report(collected(without_keras(), recorded=True), plan, use_history=True)
    assert (from_snapshot.drift, from_snapshot.last_green_at) == (None, passed.started_at)
    without = build_report(collected(without_keras()), plan)
    assert (without.drift, without.last_green_at) == (None, "")


def test_gpus_of_a_job_are_in_its_order() -> None:
    assert visible_gpus(fact_table(gpus(3), environment(CUDA_VISIBLE_DEVICES="2,0"))) == (2, 0)
    for other in range(3):
        devices = (gpu(index, numbered=index != other) for index in range(3))
        assert visible_gpus(fact_table(gpus(3, *devices), environment())) == ()


def test_plan_without_checks_is_inconclusive() -> None:
    checklist = Checklist(name="empty", version=1, owner="me", source="a test", assumptions=Assumptions(), entries=())
    plan = Plan(checklist=checklist, checks=(), rules=checklist.rules(today=TODAY))
    facts: dict[type[FactGroup], FactGroup] = {SmokeRuns: SmokeRuns()}
    report = build_report(Collected(facts=facts, target="here", started_at=STARTED, duration_s=0.0), plan)
    assert (report.verdict.exit_code, report.target, report.duration_s) == (3, "here", 0.0)
