"""The short form of `make mutants`: changes of one small part of each package, with the tests that mirror it."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.command import captured

ROOT = Path(__file__).parents[2]
PARTS = {
    "checks/kdoctor_checks/host/": "tests/kdoctor_checks/host",
    "kdoctor/diff/compare.py": "tests/kdoctor/diff/test_compare.py",
    "kdoctor/engine/verdict.py": "tests/kdoctor/engine/test_verdict.py",
    "kdoctor/lock/drift.py": "tests/kdoctor/lock/test_drift.py",
    "kdoctor/matrix/ways.py": "tests/kdoctor/matrix/test_ways.py",
    "kdoctor/rollback/settings.py": "tests/kdoctor/rollback/test_settings.py",
    "kdoctor_recordings/formats/smi_nvlink.py": "tests/kdoctor_recordings/formats/test_smi_nvlink.py",
}
ROW = re.compile(r"^(\w+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +[\d.]+%$", re.MULTILINE)


@pytest.mark.evidence
def test_tests_notice_small_changes_in_each_package(record_property: Callable[[str, object], None]) -> None:
    chosen = [argument for file, tests in PARTS.items() for argument in ("--file", file, "--tests", tests)]
    command = [sys.executable, "tests/mutants/run.py", "--sample", "20", "--least", "0.9", *chosen]
    done = captured(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": ""})
    assert done.returncode == 0, done.stdout + done.stderr
    packages = {name: list(map(int, counts)) for name, *counts in ROW.findall(done.stdout)}
    total = packages.pop("all")
    assert total[0] == 20
    assert len(packages) >= len(PARTS) - 2  # a sample of 20 may leave a small one out
    for name, (_, own, other, _, _) in packages.items():
        record_property("mutants killed", (name, own + other))
