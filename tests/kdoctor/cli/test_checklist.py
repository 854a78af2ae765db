import json
import os
import sys
from pathlib import Path

import pytest

from helpers.checklist_texts import WITHOUT_TRAININGS
from helpers.command import kdoctor, make_target
from helpers.facts import cpu_host, keras, package, packages
from kdoctor.catalog.load import load_catalog
from kdoctor.facts import FactGroup
from kdoctor.lock.store import read_lock
from kdoctor.snapshot.document import Snapshot, dumps
from kdoctor.snapshot.redaction import Redaction
from kdoctor.testing import fact_table

NO_REDACTION = Redaction(home="", user="")

LIST = f"# Written by hand: every comment stays.\n{WITHOUT_TRAININGS}"


def record_snapshot(path: Path, *changed: FactGroup) -> Path:
    path.write_text(dumps(Snapshot.now(fact_table(*cpu_host(), *changed)), NO_REDACTION), encoding="utf-8")
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


def test_init_writes_valid_checklist_and_keeps_existing_file(tmp_path: Path) -> None:
    target = make_target(tmp_path / "env", tensorflow="")
    file = tmp_path / "ci/My Node.yaml"
    done = kdoctor("checklist", "init", file, "--owner", "ml: platform", "--python", target)
    assert done.returncode == 0, done.stderr
    assert f"kdoctor check --checklist '{file}' --python {target}" in done.stdout
    assert kdoctor("checklist", "validate", file).returncode == 0
    text = file.read_text()
    assert "name: my-node\n" in text
    assert 'tensorflow: "~=2.21.0"' in text
    assert f"from {target}" in done.stdout
    again = kdoctor("checklist", "init", file, "--python", target)
    assert again.returncode == 2
    assert f"{file} already exists" in again.stderr
    assert file.read_text() == text
    assert kdoctor("checklist", "init", file, "--force", "--python", target).returncode == 0
    assert file.read_text() != text


def test_passing_run_is_recorded_reproducibly(job: Path) -> None:
    snapshot = record_snapshot(job.parent / "facts.json")
    done = kdoctor("checklist", "record", job, "--snapshot", snapshot)
    assert done.returncode == 0, done.stdout
    path = job.with_name("job.lock.yaml")
    assert str(path) in done.stdout
    first = path.read_text()
    assert kdoctor("checklist", "record", job, "--snapshot", snapshot).returncode == 0
    assert path.read_text() == first
    assert job.read_text() == LIST
    assert kdoctor("checklist", "validate", job, path).returncode == 0  # as ci/*.yaml has both
    path.write_text(first.replace("2.21.0", "2.20.0"))
    done = kdoctor("checklist", "validate", job, path)
    assert (done.returncode, done.stderr.partition(path.name)[0]) == (2, f"kdoctor: {path.parent}/")


def test_failed_run_is_not_recorded_and_lock_stays(job: Path) -> None:
    good = record_snapshot(job.parent / "good.json")
    bad = record_snapshot(job.parent / "bad.json", without_keras())
    lock = job.with_name("job.lock.yaml")
    assert kdoctor("checklist", "record", job, "--snapshot", bad).returncode == 1
    assert not lock.exists()
    kdoctor("checklist", "record", job, "--snapshot", good)
    before = lock.read_bytes()
    done = kdoctor("checklist", "record", job, "--snapshot", bad)
    assert done.returncode == 1
    assert "versions.packages-expected" in done.stderr
    assert lock.read_bytes() == before


def test_accepted_failure_is_recorded_with_reason(job: Path) -> None:
    bad = record_snapshot(job.parent / "bad.json", without_keras())
    accept = ("--accept", "versions.packages-expected", "--reason", "keras comes tomorrow")
    done = kdoctor("checklist", "record", job, "--snapshot", bad, *accept, "--accept", "versions.tensorflow-installed")
    assert done.returncode == 0, done.stderr
    assert "--accept versions.tensorflow-installed" in done.stderr
    assert "versions.packages-expected" not in done.stderr
    (accepted,) = read_lock(job.with_name("job.lock.yaml")).accepted
    assert (accepted.check, accepted.reason) == ("versions.packages-expected", "keras comes tomorrow")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_unwritable_folder_is_an_error_before_the_run(job: Path) -> None:
    job.parent.chmod(0o555)
    done = kdoctor("checklist", "record", job)
    assert done.returncode == 2
    assert "job.lock.yaml" in done.stderr


def test_lock_of_other_checklist_is_not_replaced(job: Path) -> None:
    snapshot = record_snapshot(job.parent / "facts.json")
    kdoctor("checklist", "record", job, "--snapshot", snapshot)
    job.write_text(LIST.replace("name: job", "name: other"))
    for command in (("checklist", "record", job), ("check", "-c", job)):
        done = kdoctor(*command, "--snapshot", snapshot)
        assert done.returncode == 2
        assert "'job'" in done.stderr
        assert "'other'" in done.stderr


def test_newer_lock_is_not_replaced(job: Path) -> None:
    snapshot = record_snapshot(job.parent / "facts.json")
    kdoctor("checklist", "record", job, "--snapshot", snapshot)
    lock = job.with_name("job.lock.yaml")
    lock.write_text(newer := lock.read_text().replace("kdoctor/lock/v1", "kdoctor/lock/v2"))
    done = kdoctor("checklist", "record", job, "--snapshot", snapshot)
    assert done.returncode == 2
    assert "kdoctor/lock/v2" in done.stderr
    assert lock.read_text() == newer


def test_damaged_lock_is_an_error_and_record_replaces_it(job: Path) -> None:
    snapshot = record_snapshot(job.parent / "facts.json")
    kdoctor("checklist", "record", job, "--snapshot", snapshot)
    lock = job.with_name("job.lock.yaml")
    lock.write_text(lock.read_text().replace("3.15.1", "3.15.0"))
    for command in (("check", "-c", job), ("rollback", "-c", job)):
        done = kdoctor(*command, "--snapshot", snapshot)
        assert done.returncode == 2
        assert "job.lock.yaml" in done.stderr
    assert kdoctor("check", "-c", job, "--snapshot", snapshot, "--no-lock").returncode == 0
    done = kdoctor("checklist", "record", job, "--snapshot", snapshot)
    assert done.returncode == 0
    assert "job.lock.yaml" in done.stderr
    assert read_lock(lock).facts["packages"]["keras"] == "3.15.1"


def test_failure_after_recorded_pass_has_drift_decision_and_rollback(job: Path) -> None:
    good = record_snapshot(job.parent / "good.json")
    failed = record_snapshot(job.parent / "failed.json", *other_keras())
    kdoctor("checklist", "record", job, "--snapshot", good)
    same = json.loads(kdoctor("check", "-c", job, "--snapshot", good, "-f", "json").stdout)
    assert (same["verdict"], same["drift"]["changes"]) == ("pass", [])
    on_path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = kdoctor("check", "-c", job, "--snapshot", failed, "-f", "json", PATH=on_path)
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
    printed = kdoctor("rollback", "-c", job, "--snapshot", failed).stdout
    assert "/opt/job/bin/python -m pip install --no-deps keras==3.15.1" in printed
    assert "packages.keras: 2.9.0 -> 3.15.1" in printed


def test_failure_without_lock_has_no_drift(job: Path) -> None:
    failed = record_snapshot(job.parent / "failed.json", without_keras())
    report = json.loads(kdoctor("check", "-c", job, "--snapshot", failed, "-f", "json").stdout)
    assert report["drift"] is None
    summaries = [step["summary"] for step in report["decisions"][0]["steps"]]
    failing = next(result for result in report["results"] if result["status"] == "fail")
    assert failing["findings"][0]["remedy"]["summary"] in summaries
    done = kdoctor("rollback", "-c", job, "--snapshot", failed, KDOCTOR_HISTORY=str(job.with_name("none.sqlite")))
    assert done.returncode == 2
    assert "no run of job" in done.stderr


def test_show_resolved_and_plain(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text(
        "schema: kdoctor/checklist/v1\nname: node\nversion: 1\nextends: cpu-smoke\n"
        "checks: [{id: smoke.starved-replica, severity: error}]\n"
    )
    resolved = kdoctor("checklist", "show", "node.yaml", "--resolved", cwd=tmp_path).stdout
    comments = [line for line in resolved.splitlines() if "#" in line]
    assert any("cpu-smoke (shipped)" in line and "node" in line for line in comments)
    assert any("severity in cpu-smoke (shipped): warning" in line for line in comments)
    plain = kdoctor("checklist", "show", "node.yaml", "--plain", cwd=tmp_path).stdout
    assert "#" not in plain
    assert kdoctor("checklist", "show", "node.yaml", cwd=tmp_path).stdout == (tmp_path / "node.yaml").read_text()
    assert len(load_catalog().checklists) > 1


def test_unused_and_expired_waivers_are_reported(job: Path) -> None:
    waivers = (
        "waivers:\n"
        "  - {check: versions.tensorflow-installed, reason: gone, owner: ada, expires: 2999-01-01}\n"
        "  - {check: versions.packages-expected, reason: old, owner: ada, expires: 2020-01-01}\n"
    )
    job.write_text(LIST + waivers)
    assert kdoctor("checklist", "validate", job).stderr.startswith(f"kdoctor: {job}: the waiver of ")
    failed = record_snapshot(job.parent / "failed.json", without_keras())
    done = kdoctor("check", "-v", "-c", job, "--snapshot", failed)
    assert done.returncode == 1
    assert done.stdout.count("2999-01-01") == 1
    assert "2020-01-01" in done.stdout
    report = json.loads(kdoctor("check", "-c", job, "--snapshot", failed, "-f", "json").stdout)
    assert [item["check"] for item in report["unused_waivers"]] == ["versions.tensorflow-installed"]
