"""Texts of checklists: a complete one, its parts, and functions that read them."""

from pathlib import Path

import pytest

from kdoctor.catalog.load import Catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.problems import ChecklistError
from kdoctor.checklist.resolve import Checklist

HEAD = "schema: kdoctor/checklist/v1\nname: job\nversion: 3\nowner: ml-platform\n"
CHECKS = "checks:\n  - id: host.memory\n"
REASON = "these tests are about something else"
NO_SCENARIOS = f"\nwithout: {{baseline: {REASON}, edge-case: {REASON}, failure-path: {REASON}}}\n"
ONLY_BASELINE = f"\nwithout: {{edge-case: {REASON}, failure-path: {REASON}}}\n"
FULL = (
    HEAD
    + """\
assumptions:
  python: ">=3.10,<3.14"
  gpus: {count: 8}
checks:
  - {id: gpu.count-expected, severity: warning, accept_unknown: a container hides them}
  - id: host.memory
    parameters: {least_gib: 2, names: [a, b], level: far}
  - id: versions.python-supported
  - id: smoke.baseline
scenarios:
  - {id: smoke.baseline, kind: baseline, strategy: mirrored, replicas: gpus, expect: it trains}
without: {edge-case: none was written yet, failure-path: none was written yet}
waivers:
  - {check: host.memory, subject: "host*", reason: known, owner: ada, expires: 2030-12-31}
rollback:
  decides: ada
  at_once: [versions.*]
  fix_forward: [host]
"""
)


def untrained(*checks: str, more: str = "", version: int = 1) -> str:
    """A checklist of these checks, without trainings. ``more`` are further lines of it."""
    listed = ", ".join(f"{{id: {check}}}" for check in checks)
    return (
        f"schema: kdoctor/checklist/v1\nname: job\nversion: {version}\nowner: me\n{more}checks: [{listed}]\n"
        "without: {baseline: a test, edge-case: a test, failure-path: a test}\n"
    )


ONE_CHECK = untrained("host.memory", version=3)
WITHOUT_TRAININGS = """\
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
"""Recorded facts are enough for a passing run."""


def read(tmp_path: Path, catalog: Catalog, text: str | bytes) -> Checklist:
    """The checklist in the text, read from job.yaml."""
    path = tmp_path / "job.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_checklist(str(path), catalog)


def problems_of(tmp_path: Path, catalog: Catalog, text: str | bytes) -> list[str]:
    """Every problem as ``line:column: message``."""
    with pytest.raises(ChecklistError) as caught:
        read(tmp_path, catalog, text)
    assert caught.value.source == str(tmp_path / "job.yaml")
    return [f"{problem.line}:{problem.column}: {problem.message}" for problem in caught.value.problems]
