"""``kdoctor smoke`` on the command line."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from helpers.command import kdoctor, make_target
from kdoctor.catalog.load import load_catalog
from kdoctor.checklist.for_scenarios import choose_scenarios

BROKEN = "raise ImportError('libcudart.so.12: cannot open shared object file')"


def test_smoke_announces_trainings_and_fails_on_broken_tensorflow(tmp_path: Path) -> None:
    target = make_target(tmp_path / "venv", tensorflow=BROKEN)
    kept = tmp_path / "kept"
    done = kdoctor(
        "smoke", "--tier", "standard", "--replicas", "2", "--python", target, "-f", "json", "--keep-artifacts", kept
    )
    announced = done.stderr.splitlines()[0]
    standard = choose_scenarios(load_catalog(), tier="standard")
    assert f"smoke-standard trains {len(standard)} scenarios" in announced
    assert "2 CPU devices" in announced
    report = json.loads(done.stdout)
    statuses = {result["id"]: result["status"] for result in report["results"]}
    assert done.returncode == 1
    assert statuses["smoke.baseline"] == "fail"
    assert "pass" not in {status for name, status in statuses.items() if name.startswith("smoke.")}
    assert (kept / "runner-tensorflow.stacks").exists()
    assert (kept / "runner-jax.stacks").exists()


def test_duration_is_what_past_runs_took_here(tmp_path: Path) -> None:
    place = tmp_path / "history.sqlite"
    asked = ("smoke", "closed-form", "--replicas", "2", "--timeout", "1", "--python", make_target(tmp_path / "venv"))
    variables = {"KDOCTOR_HISTORY": str(place), "KDOCTOR_NO_HISTORY": "0"}
    first = kdoctor(*asked, variables=variables).stderr
    assert "idle machine" in first
    assert "limit: 1 s" in first
    with closing(sqlite3.connect(place)) as connection, connection:
        ((scope,),) = connection.execute("SELECT scope FROM runs").fetchall()
        assert scope == "smoke.closed-form --replicas 2"  # so that it is not compared with other scenarios
        connection.execute("UPDATE runs SET conclusion = 'pass', duration_s = 42")
    assert "the last passing run here took 42 s" in kdoctor(*asked, variables=variables).stderr
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("UPDATE runs SET conclusion = 'pass', duration_s = 42 + 89 * (id - 1)")
    assert "2 passing runs here took 42 to 131 s" in kdoctor(*asked, variables=variables).stderr


def test_scenarios_are_listed_by_tier_and_explained() -> None:
    listed = kdoctor("list", "scenarios").stdout
    assert [line for line in listed.splitlines() if line.startswith("scenarios of tier")] == [
        "scenarios of tier quick",
        "scenarios of tier standard",
        "scenarios of tier full",
    ]
    assert "smoke.lost-worker (failure-path, multi-worker)" in listed
    explained = kdoctor("explain", "smoke.lost-worker").stdout
    for text in ("dies, never-comes", "full, multi-worker", "240 s"):
        assert text in explained


@pytest.mark.smoke_full
def test_one_scenario_passes_and_keeps_artifacts(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done = kdoctor(
        "smoke", "closed-form", "--replicas", "2", "-f", "json", "--keep-artifacts", kept, TF_USE_LEGACY_KERAS="0"
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"], report["checklist"]["name"]) == (0, "pass", "smoke-chosen")
    assert "1 scenario (1 case)" in done.stderr
    smoke = {result["id"]: result["status"] for result in report["results"] if result["family"] == "smoke"}
    # Replicas on CPU devices use no GPU.
    assert smoke == {"smoke.closed-form": "pass", "smoke.gpus-worked": "skip", "smoke.gpus-unslowed": "skip"}
    assert '"iterations": 12' in (kept / "smoke.closed-form.mirrored.events").read_text()


@pytest.mark.tensorflow
def test_inapplicable_strategy_is_inconclusive() -> None:
    done = kdoctor("smoke", "--strategy", "tpu", "--replicas", "2")
    assert done.returncode == 3
    assert "smoke.tpu skipped" in " ".join(done.stdout.split())
