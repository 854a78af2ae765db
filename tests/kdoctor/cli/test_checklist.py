from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from helpers.command import kdoctor, make_target
from helpers.facts import cpu_host, keras, package, packages
from helpers.judging import fact_table
from kdoctor.engine.catalog import load_catalog
from kdoctor.facts import FactGroup
from kdoctor.lock.store import read_lock
from kdoctor.snapshot.document import Snapshot, dumps
from kdoctor.snapshot.redaction import Redaction

NOBODY = Redaction(home="", user="")

# A list without trainings, so that recorded facts suffice for a green run.
LIST = """\
# Kept by hand: every comment stays.
schema: kdoctor/checklist/v1
name: job
version: 1
owner: me
assumptions:
  packages: {keras: ">=3.0"}
  gpus: {count: 0}
checks:
  - id: versions.tensorflow-installed
  - id: versions.packages-expected
without: {baseline: a test, edge-case: a test, failure-path: a test}
rollback: {decides: ada, within: an hour, at_once: [versions]}
"""


def record_snapshot(path: Path, *changed: FactGroup) -> Path:
    path.write_text(dumps(Snapshot.now(fact_table(*cpu_host(), *changed)), NOBODY), encoding="utf-8")
    return path


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "job.yaml").write_text(LIST)
    return tmp_path / "job.yaml"


def without_keras() -> FactGroup:
    return packages(*(item for item in packages().installed if item.name != "keras"))


def other_keras() -> tuple[FactGroup, ...]:
    kept = [item for item in packages().installed if item.name != "keras"]
    return packages(*kept, package("keras", "2.9.0")), keras(version="2.9.0")


def test_init_writes_a_valid_checklist_and_never_over_another(tmp_path: Path) -> None:
    target = make_target(tmp_path / "env", tensorflow="")
    file = tmp_path / "My Node.yaml"
    done = kdoctor("checklist", "init", file, "--owner", "ml: platform", "--python", target)
    assert done.returncode == 0, done.stderr
    assert kdoctor("checklist", "validate", file).returncode == 0
    text = file.read_text()
    assert "name: my-node\n" in text
    assert 'tensorflow: "~=2.21.0"' in text
    again = kdoctor("checklist", "init", file, "--python", target)
    assert again.returncode == 2
    assert "is there, and stays as it is" in again.stderr
    assert file.read_text() == text
    assert kdoctor("checklist", "init", file, "--force", "--python", target).returncode == 0
    assert file.read_text() != text


def test_a_green_run_is_recorded_and_the_same_again_is_the_same(job: Path) -> None:
    snapshot = record_snapshot(job.parent / "facts.json")
    done = kdoctor("checklist", "record", job, "--snapshot", snapshot)
    assert done.returncode == 0, done.stdout
    path = job.with_name("job.lock.yaml")
    assert done.stdout.startswith(f"{path}: recorded (job version 1, ")
    first = path.read_text()
    assert kdoctor("checklist", "record", job, "--snapshot", snapshot).returncode == 0
    undated = [
        [line for line in text.splitlines() if not line.startswith("recorded:")] for text in (first, path.read_text())
    ]
    assert undated[0] == undated[1]
    assert job.read_text() == LIST


def undated(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("recorded:")]


def test_a_red_run_is_not_recorded_and_the_old_lock_stays(job: Path) -> None:
    good = record_snapshot(job.parent / "good.json")
    bad = record_snapshot(job.parent / "bad.json", without_keras())
    lock = job.with_name("job.lock.yaml")
    assert kdoctor("checklist", "record", job, "--snapshot", bad).returncode == 1
    assert not lock.exists()
    kdoctor("checklist", "record", job, "--snapshot", good)
    before = lock.read_bytes()
    done = kdoctor("checklist", "record", job, "--snapshot", bad)
    assert done.returncode == 1
    assert "nothing was recorded: versions.packages-expected failed" in done.stderr
    assert lock.read_bytes() == before


def test_a_reviewed_exception_is_recorded_with_its_reason(job: Path) -> None:
    bad = record_snapshot(job.parent / "bad.json", without_keras())
    accept = ("--accept", "versions.packages-expected", "--reason", "keras comes tomorrow")
    done = kdoctor("checklist", "record", job, "--snapshot", bad, *accept, "--accept", "versions.tensorflow-installed")
    assert done.returncode == 0, done.stderr
    assert "versions.tensorflow-installed was not red, so there was nothing to accept" in done.stderr
    (accepted,) = read_lock(job.with_name("job.lock.yaml")).accepted
    assert (accepted.check, accepted.reason) == ("versions.packages-expected", "keras comes tomorrow")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--accept", "gpu.free"), "--accept needs a --reason"),
        (("--reason", "x"), "no --accept"),
        (("--accept", "gpu.fre", "--reason", "x"), "did you mean 'gpu.free'"),
        (("--lock", "/nowhere/x.yaml"), "does not exist"),
    ],
)
def test_wrong_usage_of_record_is_told_before_anything_runs(job: Path, arguments: tuple[str, ...], words: str) -> None:
    done = kdoctor("checklist", "record", job, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert not done.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_may_not_be_written_is_told_before_anything_runs(job: Path) -> None:
    job.parent.chmod(0o555)
    assert "cannot be written" in kdoctor("checklist", "record", job).stderr


def test_the_lock_of_another_checklist_is_not_replaced(job: Path) -> None:
    snapshot = record_snapshot(job.parent / "facts.json")
    kdoctor("checklist", "record", job, "--snapshot", snapshot)
    job.write_text(LIST.replace("name: job", "name: other"))
    for command in (("checklist", "record", job), ("check", "-c", job)):
        done = kdoctor(*command, "--snapshot", snapshot)
        assert done.returncode == 2
        assert "is the lock of checklist 'job', not of 'other'" in done.stderr


def test_a_newer_kdoctors_lock_is_not_replaced(job: Path) -> None:
    snapshot = record_snapshot(job.parent / "facts.json")
    kdoctor("checklist", "record", job, "--snapshot", snapshot)
    lock = job.with_name("job.lock.yaml")
    lock.write_text(newer := lock.read_text().replace("kdoctor/lock/v1", "kdoctor/lock/v2"))
    done = kdoctor("checklist", "record", job, "--snapshot", snapshot)
    assert done.returncode == 2
    assert "written by a newer kdoctor (schema kdoctor/lock/v2" in done.stderr
    assert lock.read_text() == newer


def test_a_damaged_lock_is_told_and_recording_replaces_it(job: Path) -> None:
    snapshot = record_snapshot(job.parent / "facts.json")
    kdoctor("checklist", "record", job, "--snapshot", snapshot)
    lock = job.with_name("job.lock.yaml")
    lock.write_text(lock.read_text().replace("3.15.1", "3.15.0"))
    for command in (("check", "-c", job), ("rollback", "-c", job)):
        done = kdoctor(*command, "--snapshot", snapshot)
        assert done.returncode == 2
        assert "it was changed since it was recorded" in done.stderr
    assert kdoctor("check", "-c", job, "--snapshot", snapshot, "--no-lock").returncode == 0
    done = kdoctor("checklist", "record", job, "--snapshot", snapshot)
    assert done.returncode == 0
    assert "it is replaced if the run is green" in done.stderr
    assert read_lock(lock).facts["packages"]["keras"] == "3.15.1"


def test_the_way_from_green_to_red_and_what_is_said_of_it(job: Path) -> None:
    good = record_snapshot(job.parent / "good.json")
    red = record_snapshot(job.parent / "red.json", *other_keras())
    kdoctor("checklist", "record", job, "--snapshot", good)
    same = json.loads(kdoctor("check", "-c", job, "--snapshot", good, "-f", "json").stdout)
    assert (same["verdict"], same["drift"]["changes"]) == ("pass", [])
    done = kdoctor("check", "-c", job, "--snapshot", red, "-f", "json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    first = report["drift"]["changes"][0]
    assert first["fact"] == "packages.keras"
    assert (first["old"], first["new"]) == ("3.15.1", "2.9.0")
    assert "versions.packages-expected" in first["explains"]
    (decision,) = report["decisions"]
    assert decision["action"] == "roll back at once"
    assert (decision["decides"], decision["within"]) == ("ada", "an hour")
    commands = [command for step in decision["steps"] for command in step["commands"]]
    assert commands == [
        "/opt/job/bin/python -m pip install --no-deps keras==3.15.1",
        f"kdoctor check --checklist {job} --python /opt/job/bin/python",
    ]
    said = kdoctor("rollback", "-c", job, "--snapshot", red).stdout
    assert "/opt/job/bin/python -m pip install --no-deps keras==3.15.1" in said
    assert "packages.keras: 2.9.0 -> 3.15.1" in said


def test_without_a_lock_the_decision_says_that_none_is_there(job: Path) -> None:
    red = record_snapshot(job.parent / "red.json", without_keras())
    report = json.loads(kdoctor("check", "-c", job, "--snapshot", red, "-f", "json").stdout)
    assert report["drift"] is None
    assert "No green run is on record" in report["decisions"][0]["steps"][0]["summary"]
    done = kdoctor("rollback", "-c", job, "--snapshot", red, KDOCTOR_HISTORY=str(job.with_name("none.sqlite")))
    assert done.returncode == 2
    assert "no run of job on this host is in the history" in done.stderr


def test_show_resolved_and_plain(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text(
        "schema: kdoctor/checklist/v1\nname: node\nversion: 1\nextends: cpu-smoke\n"
        "checks: [{id: smoke.starved-replica, severity: error}]\n"
    )
    resolved = kdoctor("checklist", "show", "node.yaml", "--resolved", cwd=tmp_path).stdout
    assert "# node, written out; it extends cpu-smoke (shipped)." in resolved
    assert "# severity was warning in cpu-smoke (shipped)" in resolved
    plain = kdoctor("checklist", "show", "node.yaml", "--plain", cwd=tmp_path).stdout
    assert "#" not in plain
    assert kdoctor("checklist", "show", "node.yaml", cwd=tmp_path).stdout == (tmp_path / "node.yaml").read_text()
    assert len(load_catalog().checklists) > 1


def test_a_waiver_without_a_use_and_an_expired_one_are_told(job: Path) -> None:
    waivers = (
        "waivers:\n"
        "  - {check: versions.tensorflow-installed, reason: gone, owner: ada, expires: 2999-01-01}\n"
        "  - {check: versions.packages-expected, reason: old, owner: ada, expires: 2020-01-01}\n"
    )
    job.write_text(LIST + waivers)
    red = record_snapshot(job.parent / "red.json", without_keras())
    done = kdoctor("check", "-c", job, "--snapshot", red)
    assert done.returncode == 1
    assert "Waivers that match nothing any more" in done.stdout
    assert "versions.tensorflow-installed (*), until 2999-01-01, by ada: gone" in done.stdout
    assert "expired on 2020-01-01 (ada): old" in " ".join(done.stdout.split())


@pytest.mark.parametrize("command", ["check", "rollback"])
def test_a_checklist_that_is_named_without_its_option_is_told_how(command: str) -> None:
    done = kdoctor(command, "my node.yaml")
    assert done.returncode == 2
    assert f"kdoctor {command} --checklist 'my node.yaml'" in done.stderr
    assert not done.stdout
