import json
import subprocess
import sys
import venv
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import pytest

from helpers.checklist_texts import untrained
from helpers.command import captured, environ, kdoctor, make_target
from helpers.facts import cpu_host, package, packages
from helpers.locks import lock
from helpers.wheels import wheel
from kdoctor.cli import rollback
from kdoctor.rollback.rebuild import RebuildError
from kdoctor.snapshot.document import Snapshot, dumps
from kdoctor.snapshot.redaction import Redaction
from kdoctor.testing import fact_table

LIST = untrained("versions.tensorflow-installed", more="assumptions: {gpus: {count: 0}}\n")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A checklist with its lock, and a snapshot of an upgraded machine."""
    others = [item for item in packages().installed if item.name != "keras"]
    upgraded = packages(*others, package("keras", "3.6.0"))
    for name, facts in (("good", fact_table(*cpu_host())), ("now", fact_table(*cpu_host(), upgraded))):
        text = dumps(Snapshot.now(facts), Redaction(home="", user=""))
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    (tmp_path / "job.yaml").write_text(LIST)
    done = kdoctor("checklist", "record", "job.yaml", "--snapshot", "good.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


COMMAND = "/opt/job/bin/python -m pip install --no-deps keras==3.15.1"


def test_lock_can_be_named(job: Path) -> None:
    (job / "job.lock.yaml").rename(job / "spring.yaml")
    without = kdoctor("rollback", "-c", "job.yaml", "--snapshot", "now.json", cwd=job)
    assert without.stderr.endswith("kdoctor check --checklist job.yaml --snapshot now.json\n")
    (job / "cpu-smoke.lock.yaml").touch()
    assert kdoctor("rollback", cwd=job).stderr.endswith("kdoctor rollback --checklist cpu-smoke\n")
    done = kdoctor("rollback", "-c", "job.yaml", "--snapshot", "now.json", "--to", "spring.yaml", cwd=job)
    assert COMMAND in done.stdout


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return make_target(tmp_path / "target", tensorflow="")


def keras(target: Path, version: str) -> None:
    (metadata,) = target.glob("lib/python*/site-packages/keras-*.dist-info")
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: keras\nVersion: {version}\n")
    metadata.rename(metadata.with_name(f"keras-{version}.dist-info"))


def test_missing_lock_falls_back_to_last_passing_run(tmp_path: Path, target: Path) -> None:
    (tmp_path / "job.yaml").write_text(LIST)
    options = ("-c", "job.yaml", "--python", target)
    variables = {"KDOCTOR_NO_HISTORY": "0", "KDOCTOR_HISTORY": str(tmp_path / "history.sqlite")}
    none = kdoctor("rollback", *options, cwd=tmp_path, variables=variables)
    assert none.returncode == 2
    assert "job.lock.yaml" in none.stderr
    assert "no run of job" in none.stderr
    assert none.stderr.endswith(f"kdoctor check --checklist job.yaml --python {target}\n")
    assert kdoctor("check", *options, cwd=tmp_path, variables=variables).returncode == 0
    keras(target, "3.6.0")
    for to in ((), ("--to", "last-passing"), ("--to", "last-green")):
        done = kdoctor("rollback", *options, *to, cwd=tmp_path, variables=variables)
        assert done.returncode == 0, done.stderr
        assert "run 1 of the history" in done.stdout
        assert "packages.keras: 3.6.0 -> 3.15.1" in done.stdout
    (tmp_path / "bad.yaml").write_text(LIST.replace("tensorflow-installed", "keras-compatible").replace("job", "bad"))
    kdoctor("check", "-c", "bad.yaml", *options[2:], cwd=tmp_path, variables=variables)
    failing = kdoctor("rollback", "-c", "bad.yaml", *options[2:], cwd=tmp_path, variables=variables)
    assert f"kdoctor check --checklist bad.yaml --python {target}\n" in failing.stderr
    other = kdoctor("rollback", "-c", "job.yaml", cwd=tmp_path, variables=variables)
    assert f"kdoctor rollback --checklist job.yaml --to last-passing --python {target}/bin/python\n" in other.stderr
    (tmp_path / "late.yaml").write_text(LIST.replace("job", "late"))
    kdoctor("check", "-c", "late.yaml", *options[2:], "--select", "versions", cwd=tmp_path, variables=variables)
    narrowed = kdoctor("rollback", "-c", "late.yaml", cwd=tmp_path, variables=variables)
    assert "kdoctor check --checklist late.yaml\n" in narrowed.stderr
    (tmp_path / "job.lock.yaml").write_text("damaged")
    damaged = kdoctor("check", *options, cwd=tmp_path, variables=variables)
    assert damaged.stderr.endswith(f"kdoctor checklist record job.yaml --python {target}\n")


def test_failed_run_without_lock_shows_drift_since_last_passing_run(tmp_path: Path, target: Path) -> None:
    expects = LIST.replace("{gpus: {count: 0}}", '{gpus: {count: 0}, packages: {keras: "~=3.15"}}')
    expects = expects.replace("[{id: versions.tensorflow-installed}]", "[{id: versions.packages-expected}]")
    (tmp_path / "job.yaml").write_text(expects + "rollback: {decides: ada, at_once: [versions]}\n")
    options = ("-c", "job.yaml", "--python", target, "--format", "json")
    variables = {"KDOCTOR_NO_HISTORY": "0", "KDOCTOR_HISTORY": str(tmp_path / "history.sqlite")}
    passed = kdoctor("check", *options, cwd=tmp_path, variables=variables)
    assert (passed.returncode, json.loads(passed.stdout)["drift"]) == (0, None)
    keras(target, "3.6.0")
    failed = json.loads(kdoctor("check", *options, cwd=tmp_path, variables=variables).stdout)
    assert failed["drift"]["lock"] == "run 1 of the history"
    assert [(item["fact"], item["old"], item["new"]) for item in failed["drift"]["changes"]] == [
        ("packages.keras", "3.15.1", "3.6.0"), ("keras.version", "3.15.1", "3.6.0")
    ]  # fmt: skip
    assert "keras==3.15.1" in failed["decisions"][0]["steps"][0]["commands"][0]
    off = kdoctor("check", *options, "--no-history", cwd=tmp_path, variables=variables)
    assert json.loads(off.stdout)["drift"] is None


def test_last_passing_ignores_the_lock(tmp_path: Path, target: Path) -> None:
    (tmp_path / "job.yaml").write_text(LIST)
    options = ("job.yaml", "--python", target)
    assert kdoctor("checklist", "record", *options, cwd=tmp_path).returncode == 0
    variables = {"KDOCTOR_HISTORY": str(tmp_path / "history.sqlite")}
    done = kdoctor("rollback", "-c", *options, "--to", "last-passing", cwd=tmp_path, variables=variables)
    assert (done.returncode, "no run of job" in done.stderr) == (2, True)
    assert "job.lock.yaml" in kdoctor("rollback", "-c", *options, cwd=tmp_path, variables=variables).stdout


def test_script_restores_a_real_environment(tmp_path: Path) -> None:
    """A virtual environment with pip and a folder of wheels: recorded, changed, restored by the script."""
    index = tmp_path / "index"
    index.mkdir()
    for name, version in (("tensorflow", "2.21.0"), ("keras", "3.15.1"), ("keras", "3.6.0"), ("late_comer", "1.0")):
        wheel(index, name, version, {f"{name}/__init__.py": ""})
    folder = tmp_path / "env with a space"
    venv.create(folder, with_pip=True, symlinks=True)
    python = folder / "bin" / "python"
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def pip(*arguments: str) -> None:
        command = [str(python), "-m", "pip", "--quiet", "install", "--no-deps", *arguments]
        subprocess.run(command, check=True, env=environ(**variables))

    def back(*options: str) -> subprocess.CompletedProcess[str]:
        return kdoctor("rollback", "-c", "job.yaml", "--python", python, *options, cwd=tmp_path, variables=variables)

    pip("tensorflow", "keras==3.15.1")
    (tmp_path / "job.yaml").write_text(LIST)
    record = ("checklist", "record", "job.yaml", "--python", python)
    assert kdoctor(*record, cwd=tmp_path, variables={"NCCL_DEBUG": "WARN it's"}).returncode == 0
    pip("keras==3.6.0", "late_comer")
    back("--fix-script", "back.sh")
    done = captured(["bash", "back.sh"], cwd=tmp_path, input="y\ny\n", env=environ(**variables, NCCL_P2P_DISABLE="1"))
    assert done.returncode == 0, done.stderr
    sourced = captured(["bash", "-c", '. ./kdoctor-rollback.env; echo "$NCCL_DEBUG"'], check=True, cwd=tmp_path)
    assert sourced.stdout == "WARN it's\n"
    variables["NCCL_DEBUG"] = "WARN it's"
    assert json.loads(back("--format", "json").stdout)["steps"] == []


def test_building_the_recorded_environment_is_shown_while_it_lasts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notes: list[str] = []
    monkeypatch.setattr(rollback, "progress", lambda: nullcontext(Mock(note=notes.append)))
    monkeypatch.setattr(rollback, "rebuild", Mock(side_effect=RebuildError("no index")))
    monkeypatch.setattr(rollback, "treat_ends_as_interrupts", Mock())
    python = ".".join(map(str, sys.version_info[:3]))
    recorded = lock(facts={**lock().facts, "python": {"version": python}})
    assert rollback._verify(recorded, Mock(), Mock(), sys.executable, 5.0) == 1
    assert [f"{len(recorded.facts['packages'])} packages" in note for note in notes] == [True]
    assert "no index" in capsys.readouterr().out
