import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from helpers.command import kdoctor
from helpers.locks import lock
from helpers.wheels import wheel
from kdoctor.catalog.load import load_catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.lock.document import Lock, text_of
from kdoctor.lock.record import expectations_of

HERE = ".".join(map(str, sys.version_info[:3]))


JOB = """\
schema: kdoctor/checklist/v1
name: job
version: 1
owner: ada
assumptions: {gpus: {count: 0}}
checks:
  - {id: versions.tensorflow-installed}
  - {id: smoke.uneven-final-batch}
  - {id: smoke.starved-replica, severity: warning}
scenarios: [{id: smoke.uneven-final-batch, kind: edge-case, strategy: mirrored, replicas: 2, expect: as measured}]
without: {baseline: trained elsewhere, failure-path: trained elsewhere}
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(JOB, encoding="utf-8")
    return path


def write(job: Path, python: str, packages: dict[str, str]) -> Lock:
    base = lock()
    facts = {**base.facts, "python": {**base.facts["python"], "version": python}, "packages": packages}
    expectations = expectations_of(load_checklist(str(job), load_catalog()))
    made = base.model_copy(update={"expectations": expectations, "facts": facts})
    job.with_name("job.lock.yaml").write_text(text_of(made))
    return made


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate temporary folder, since other tests use the common one at the same time."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def leftovers(temporary: Path) -> list[Path]:
    return list(temporary.glob("kdoctor-*"))


def test_unavailable_packages_fail_and_leave_nothing_behind(job: Path, temporary: Path) -> None:
    write(job, HERE, {"keras": "3.15.1"})
    done = kdoctor("rollback", "-c", job, "--verify", "--python", sys.executable, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert done.returncode == 1
    assert "No matching distribution found for keras==3.15.1" in done.stdout
    assert leftovers(temporary) == []


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    return folder


def verify(job: Path, index: Path, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}
    options = ("--verify", "--python", sys.executable)
    return kdoctor("rollback", "-c", job, *options, timeout_s=timeout_s, variables=variables)


def test_environment_that_does_not_train_fails(job: Path, index: Path, temporary: Path) -> None:
    wheel(index, "tensorflow", "2.21.0", {"tensorflow/__init__.py": "raise ImportError('libcudart is gone')\n"})
    wheel(index, "keras", "3.15.1", {"keras/__init__.py": ""})
    write(job, HERE, {"tensorflow": "2.21.0", "keras": "3.15.1"})
    done = verify(job, index)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "libcudart is gone" in done.stdout
    assert "--select" not in done.stdout, "the user did not pass this option"
    assert leftovers(temporary) == []


@pytest.mark.tensorflow
def test_lock_that_can_be_restored_passes(job: Path, index: Path, temporary: Path) -> None:
    # The wheel adds the packages of this environment to the path: the real TensorFlow without installing 600 MB.
    wheel(index, "bridge", "1.0", {"bridge.pth": f"{sysconfig.get_path('purelib')}\n"})
    write(job, HERE, {"bridge": "1.0"})
    done = verify(job, index, timeout_s=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "smoke.starved-replica" in done.stdout, "the trainings ran and showed this known hazard"
    assert leftovers(temporary) == []
