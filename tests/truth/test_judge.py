"""Stored trainings become rows of the version matrix."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.truth.__main__ import Measurement, is_chosen, read_options
from benchmarks.truth.environments import ENVIRONMENTS
from benchmarks.truth.judge import Cell, judge_run, rows, runs_of
from benchmarks.truth.measure import feature_scenarios, features, without_late
from benchmarks.truth.table import Measured, combine, read_table, title, write_table

from helpers.cases import cases
from kdoctor.catalog.load import load_catalog
from kdoctor.facts import Facts, SmokeCase, SmokeRun, SmokeRuns, Weights
from kdoctor.matrix.keras import FeatureResult
from kdoctor.matrix.load import load_matrix

CATALOG = load_catalog()
WEIGHTS = Weights(variables=4, mirrored=4, nonfinite=(), replicas_agree=True)


def case(**changes: Any) -> SmokeCase:
    values: dict[str, Any] = {
        "name": "mirrored",
        "outcome": "trained",
        "strategy": "MirroredStrategy",
        "replicas": 2,
        "devices": ("/device:CPU:0", "/device:CPU:1"),
        "examples": 32,
        "global_batch": 16,
        "final_batch": 16,
        "losses": (0.8, 0.4),
        "reference_losses": (0.8, 0.4),
        "weights": WEIGHTS,
        "weight_deviation": 6e-8,
        "optimizer": "SGD",
    }
    return SmokeCase(**{**values, **changes})


def judged(**changes: Any) -> dict[str, Cell]:
    run = SmokeRun(
        scenario="smoke.baseline",
        version=1,
        devices_kind="cpu",
        replicas_requested=2,
        tensorflow="2.21.0",
        keras="keras 3.15.1",
        cases=(case(**changes),),
    )
    facts: Facts = {SmokeRuns: SmokeRuns(runs={"smoke.baseline": run})}
    assert runs_of(facts) == {"smoke.baseline": run}
    return judge_run(CATALOG, facts, run)


@cases(
    ({}, "right", "equal to one device within 6e-08"),
    ({"weight_deviation": 0.18}, "wrong", "weights differ by up to 0.18"),
    ({"losses": (0.9, 0.4)}, "wrong", "reported losses are 0.9, 0.4 instead of 0.8, 0.4"),
    (
        {"outcome": "raised", "phase": "first step", "error_type": "ValueError", "error_message": "no such thing"},
        "raises",
        "ValueError in the first step: no such thing",
    ),
    (
        {"outcome": "raised", "phase": "train", "error_type": "ValueError", "error_message": "in /home/me/x.py"},
        "raises",
        "ValueError in phase train",
    ),
    ({"outcome": "timed-out", "phase": "step 3"}, "hangs", "in step 3"),
    ({"outcome": "died", "phase": "trace", "signal": "SIGSEGV"}, "crashes", "SIGSEGV in phase trace"),
    ({"outcome": "skipped", "skip_reason": "needs NCCL"}, "unsupported", "needs NCCL"),
)
def test_result_of_a_case(changes: dict[str, Any], result: str, observed: str) -> None:
    cell = judged(**changes)["baseline/mirrored"]
    assert (cell.result, cell.observed) == (result, observed)
    assert cell.checks == (() if result == "unsupported" else ("smoke.baseline",))


def test_case_without_evidence_has_no_result() -> None:
    assert judged(weight_deviation=None) == {}
    assert judged(replicas=None) == {}


def test_neighbouring_releases_with_the_same_result_share_a_row() -> None:
    results = {
        "3.10.0": {"a": Cell("right", "equal to one device within 6e-08")},
        "3.9.2": {"a": Cell("wrong", "weights differ by up to 0.2")},
        "3.15.1": {"a": Cell("right", "equal to one device within 9e-08"), "b": Cell("raises", "x")},
    }
    found = [(row["feature"], row["releases"], row["result"], row["observed"]) for row in rows(results, "keras")]
    assert found == [
        ("a", ["3.9.2"], "wrong", "weights differ by up to 0.2"),
        ("a", ["3.10.0", "3.15.1"], "right", "equal to one device within 9e-08"),
        ("b", ["3.15.1"], "raises", "x"),
    ]


@cases(("hangs", True), ("wrong", True), ("right", False), ("unsupported", False))
def test_defect_is_measured_again(result: FeatureResult, *, again: bool) -> None:
    assert Measurement("2026-11-22", Cell(result, "")).is_defect is again
    assert not Measurement("2026-11-22", None).is_defect


def test_written_table_is_a_part_of_the_version_matrix(tmp_path: Path) -> None:
    cells = {"baseline/mirrored": Cell("wrong", "weights differ: by 0.2 [much]", ("smoke.baseline",))}
    found = [
        Measured(
            package="keras", release=release, tensorflow="2.20.0", python="3.11.7", measured=day, times=2, cells=cells
        )
        for release, day in (("3.98", "2026-12-01"), ("3.99.0.dev1", "2026-12-02"))
    ]
    write_table(tmp_path / "table.yaml", CATALOG, found)
    matrix = load_matrix(str(tmp_path / "table.yaml"), {})
    assert matrix.updated == "2026-12-02"
    known = matrix.keras_feature("baseline/mirrored", "keras", "3.98.5")
    assert (known.result, known.measured, known.observed) == ("wrong", False, "weights differ: by 0.2 [much]")
    assert matrix.features["baseline/mirrored"].checks == ("smoke.baseline",)
    assert yaml.safe_load((tmp_path / "table.yaml").read_text())["keras_releases"][0]["release"] == "3.98"


def one(**changes: Any) -> Measured:
    values: dict[str, Any] = {
        "package": "keras",
        "release": "3.98",
        "tensorflow": "2.20.0",
        "python": "3.11.7",
        "measured": "2026-12-02",
        "times": 1,
        "cells": {"baseline/mirrored": Cell("right", "equal to one device within 9e-08", ("smoke.baseline",))},
    }
    return Measured(**{**values, **changes})


def test_rows_of_the_table_that_were_not_measured_again_stay(tmp_path: Path) -> None:
    adam = Cell("wrong", "weights differ by up to 0.2", ("smoke.state",))
    before = one(measured="2026-12-01", cells={"state/adam": adam, "baseline/mirrored": Cell("wrong", "x")})
    write_table(tmp_path / "table.yaml", CATALOG, [before])
    read = read_table(tmp_path / "table.yaml", CATALOG, features(feature_scenarios(CATALOG)))["keras", "3.98"]
    assert read.cells["state/adam"] == adam
    both = combine(read, one())
    assert (both.measured, both.cells["baseline/mirrored"].result) == ("2026-12-01", "right")
    assert both.cells["state/adam"] == adam
    assert combine(read, one(tensorflow="2.21.0")).cells == one().cells
    assert combine(None, one()) == one()


WRONG = Cell("wrong", "weights differ by up to 0.2", ("smoke.state",))
RIGHT = Cell("right", "equal to one device within 9e-08", ("smoke.state",))


@cases(
    ({"state/adam": WRONG}, {"state/adam": WRONG}, 2),
    ({"state/adam": WRONG}, {"baseline/mirrored": WRONG}, 1),
    ({"state/adam": RIGHT}, {"baseline/mirrored": WRONG}, 2),
    ({"state/adam": WRONG}, {"state/adam": RIGHT}, 1),
)
def test_defects_count_as_measured_as_often_as_the_one_that_was_measured_least(
    earlier: dict[str, Cell], later: dict[str, Cell], times: int
) -> None:
    assert combine(one(cells=earlier, times=1), one(cells=later, times=2)).times == times


@cases(
    ((), {"wrong", "right", "new"}),
    (("--missing",), {"new"}),
    (("--defects",), {"wrong"}),
    (("--defects", "--scenario", "smoke.other"), set()),
)
def test_what_is_measured_depends_on_the_table(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], chosen: set[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["truth", *arguments])
    known = {"wrong": WRONG, "right": RIGHT, "new": None}
    assert {name for name, cell in known.items() if is_chosen(f"state/{name}", cell, read_options())} == chosen


def test_rows_of_changed_scenarios_and_removed_features_are_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "table.yaml"
    write_table(file, CATALOG, [one()])
    assert read_table(file, CATALOG, ["state/adam"]) == {}
    file.write_text(file.read_text().replace("title: baseline", "title: baseline\n  version: 99"))
    assert read_table(file, CATALOG, ["baseline/mirrored"]) == {}
    assert read_table(tmp_path / "none.yaml", CATALOG, ["baseline/mirrored"]) == {}


def test_case_that_a_deadline_ended_on_a_busy_machine_is_not_stored() -> None:
    cases = (
        case(name="ended", outcome="timed-out"),
        case(name="waited", outcome="raised", error_type="DeadlineExceededError"),
        case(name="failed", outcome="raised", error_type="ValueError"),
        case(),
    )
    run = SmokeRun(scenario="smoke.baseline", version=1, devices_kind="cpu", replicas_requested=2, cases=cases)
    facts = without_late({SmokeRuns: SmokeRuns(runs={"smoke.baseline": run})})
    assert [one.name for one in runs_of(facts)["smoke.baseline"].cases] == ["failed", "mirrored"]
    assert without_late({}) == {}


def test_features_of_jobs_are_measured_and_nothing_else() -> None:
    chosen = feature_scenarios(CATALOG)
    assert {"smoke.baseline", "smoke.features", "smoke.state"} <= {item.id for item in chosen}
    assert not {"smoke.model-outside-scope", "smoke.speed", "smoke.data-parallel"} & {item.id for item in chosen}
    assert "features/clipvalue" in features(chosen)
    assert title("baseline/mirrored", CATALOG) == "baseline"
    assert title("state/adam", CATALOG) == "state: adam"
    assert title("features/clipvalue", CATALOG) == "clipvalue"
    assert title("multi-worker-features/dropout", CATALOG) == "multi worker: dropout"


def test_environments_have_different_names_and_known_releases_of_tensorflow() -> None:
    matrix = load_matrix(environ={})
    assert len({item.name for item in ENVIRONMENTS}) == len(ENVIRONMENTS)
    for item in ENVIRONMENTS[:-1]:
        release = matrix.release(item.tensorflow)
        assert release is not None
        requirement = release.requirement("keras")
        assert requirement is not None
        assert requirement.specifier.contains(item.keras)
        assert item.tf_keras in (None, release.tf_keras)
