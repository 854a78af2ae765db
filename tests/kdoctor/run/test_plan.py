from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.cases import cases
from helpers.catalogs import described, scenario, small_catalog
from helpers.judging import TODAY
from helpers.locks import lock
from kdoctor.catalog.load import load_catalog
from kdoctor.check import Check
from kdoctor.engine.judge import PlannedCheck, Rules
from kdoctor.facts import Environment, FactGroup, Gpus, Host
from kdoctor.lock.document import text_of
from kdoctor.matrix.load import MatrixError, shipped_matrix
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Assumptions, GpuAssumption, Outcome, Severity
from kdoctor.run.plan import RunOptions, with_matrix
from kdoctor.smoke.scenario import AddedTraining
from kdoctor.testing import healthy


@described("versions.informed", needs_gpus=True)
def informed(matrix: VersionMatrix) -> Iterator[Outcome]:
    yield from ()


@described("host.plain")
def plain(host: Host) -> Iterator[Outcome]:
    yield from ()


def planned(value: Check, deselected: str | None = None) -> tuple[PlannedCheck, ...]:
    return (PlannedCheck(check=value, severity=value.severity, deselected=deselected),)


RULES = Rules(today=TODAY)
NO_GPUS = Rules(today=TODAY, assumptions=Assumptions(gpus=GpuAssumption(count=0)))


def test_matrix_is_loaded_only_for_evaluated_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDOCTOR_MATRIX", "/there/is/none.yaml")  # loading it would fail
    assert with_matrix(RULES, planned(plain)).matrix is None
    assert with_matrix(RULES, planned(informed, "not selected")).matrix is None
    assert with_matrix(NO_GPUS, planned(informed)).matrix is None
    with pytest.raises(MatrixError, match=r"/there/is/none\.yaml"):
        with_matrix(RULES, planned(informed))


def test_shipped_matrix_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KDOCTOR_MATRIX", raising=False)
    found = with_matrix(RULES, planned(informed)).matrix
    assert found
    assert found.releases == shipped_matrix().releases


@cases(
    ({}, ""),
    ({"select": ["gpu", "host"], "skip": ["gpu.free"]}, "--select gpu --select host --skip gpu.free"),
    ({"smoke": False, "replicas": 2}, "--no-smoke --replicas 2"),
    ({"gpus": 7, "smoke": False}, "--no-smoke --gpus 7"),
    ({"gpus": 0}, "--gpus 0"),
    ({"added": [AddedTraining(scenario=scenario(), options="--model job:build")]}, "--model job:build"),
    ({"snapshot": Path("node7.json")}, "--snapshot node7.json"),
    ({"matrix": "mine.yaml", "allow_unknown": True, "lock": Path("x.lock.yaml")}, ""),
)
def test_scope_names_the_narrowing_options(options: dict[str, Any], scope: str) -> None:
    assert RunOptions(checklist="cpu-smoke", **options).scope == scope


def test_options_that_change_what_is_asked_are_named_with_the_checklist() -> None:
    options = RunOptions(checklist="cpu-smoke", gpus=0, fail_on=Severity.INFO, allow_unknown=True, use_lock=False)
    assert options.plan(load_catalog()).asked.options == "--gpus 0 --fail-on info --allow-unknown"


@cases(("multi-gpu-keras", 0, "left out"), ("multi-gpu-keras", 8, ""), ("cpu-smoke", 0, ""), ("cpu-smoke", None, ""))
def test_option_without_gpus_leaves_out_what_the_checklist_asks_of_them(
    checklist: str, gpus: int | None, left_out: str
) -> None:
    plan = RunOptions(checklist=checklist, gpus=gpus, use_lock=False).plan(load_catalog())
    about_gpus = [entry for entry in plan.checks if entry.check.needs_gpus]
    assert {bool(entry.deselected) for entry in about_gpus} == {bool(left_out)}
    assert not any(entry.deselected for entry in plan.checks if not entry.check.needs_gpus)


@cases(("2026-04-01T06:00:00+00:00", False), ("2999-04-01T06:00:00+00:00", True))
def test_lock_of_a_time_to_come_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recorded: str, *, is_noted: bool
) -> None:
    file = tmp_path / "cpu.lock.yaml"
    file.write_text(text_of(lock(checklist="cpu-smoke", recorded=recorded)))
    RunOptions(checklist="cpu-smoke", lock=file).plan(load_catalog())
    assert (recorded in capsys.readouterr().err) is is_noted


def test_named_matrix_is_always_validated(tmp_path: Path) -> None:
    broken = tmp_path / "mine.yaml"
    broken.write_text("schema: kdoctor/version-matrix/v99\n")
    with pytest.raises(MatrixError, match=r"mine\.yaml"):
        with_matrix(RULES, planned(plain), str(broken))


@cases(
    (1, (), {}, "single-gpu-keras"),
    (2, (), {}, "multi-gpu-keras"),
    (None, (), {}, "multi-gpu-keras"),
    (1, (), {"gpus": 1}, "multi-gpu-keras"),
    (1, (), {"lock": Path("lock.yaml")}, "multi-gpu-keras"),
    (1, (Environment,), {}, "multi-gpu-keras"),
)
def test_imported_output_of_one_gpu_is_judged_as_a_machine_with_one(
    count: int | None, others: tuple[type[FactGroup], ...], options: dict[str, Any], expected: str
) -> None:
    facts: dict[type[FactGroup], FactGroup] = {group: healthy(group) for group in others}
    facts[Gpus] = healthy(Gpus, count=count)
    assert RunOptions(checklist="multi-gpu-keras", **options).for_recording(facts).checklist == expected


@cases(
    ("jax", "multi-gpu-jax"), ("tensorflow", "multi-gpu-keras"), ("mine", "multi-gpu-keras"), (None, "multi-gpu-keras")
)
def test_backend_of_the_job_chooses_the_checklist_that_is_shipped_for_it(backend: str | None, expected: str) -> None:
    options = RunOptions(checklist="multi-gpu-keras")
    catalog = replace(small_catalog(), checklists=dict.fromkeys(("multi-gpu-jax", "multi-gpu-keras"), Path()))
    assert options.for_backend(catalog, backend).checklist == expected
