from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.command import kdoctor
from helpers.locks import lock
from kdoctor.catalog import load_catalog
from kdoctor.checklist import load_checklist
from kdoctor.lock import Lock, expectations_of, text_of

HERE = ".".join(map(str, sys.version_info[:3]))


@pytest.fixture
def job(tmp_path: Path) -> Path:
    text = load_catalog().checklists["cpu-smoke"].read_text(encoding="utf-8")
    path = tmp_path / "job.yaml"
    path.write_text(text.replace("name: cpu-smoke", "name: job"))
    return path


def write(job: Path, python: str, packages: dict[str, str]) -> Lock:
    base = lock()
    facts = {**base.facts, "python": {**base.facts["python"], "version": python}, "packages": packages}
    made = replace(base, expectations=expectations_of(load_checklist(str(job), load_catalog())), facts=facts)
    job.with_name("job.lock.yaml").write_text(text_of(made))
    return made


def leftovers() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("kdoctor-rollback-*"))


def test_a_lock_whose_packages_cannot_be_had_is_told_and_nothing_is_left(job: Path) -> None:
    write(job, HERE, {"keras": "3.15.1"})
    before = leftovers()
    done = kdoctor("rollback", "-c", job, "--verify", "--python", sys.executable, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert done.returncode == 1
    assert done.stdout.startswith("The way back does not work: the recorded packages cannot be installed:")
    assert "No matching distribution found for keras==3.15.1" in done.stdout
    assert leftovers() <= before


def test_a_lock_of_a_python_that_is_not_here_is_told(job: Path) -> None:
    write(job, "3.7.17", {"keras": "2.11.0"})
    done = kdoctor("rollback", "-c", job, "--verify", "--python", sys.executable, PATH="/nowhere")
    assert done.returncode == 1
    assert "the lock was recorded with Python 3.7.17, and there is no python3.7 here" in done.stdout


def test_a_lock_without_packages_is_wrong_usage(job: Path) -> None:
    write(job, HERE, {})
    done = kdoctor("rollback", "-c", job, "--verify")
    assert done.returncode == 2
    assert "there is no environment to build from it" in done.stderr
