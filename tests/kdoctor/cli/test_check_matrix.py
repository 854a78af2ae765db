"""``kdoctor check`` with a custom version matrix."""

import json
from pathlib import Path

import pytest

from helpers.command import kdoctor, make_target

QUICK = ("check", "--checklist", "cpu-smoke", "--no-smoke", "--select", "versions.known-bad", "--format", "json")
OWN = """\
schema: kdoctor/version-matrix/v1
updated: "2026-11-20"
platform: linux-x86_64
extends: shipped
known_bad:
- id: our_own
  when: {tensorflow: "==2.21.0"}
  effect: crash
  symptom: our models do not load
  fix: an older one
  source: seen here
"""


@pytest.mark.parametrize("by_variable", [False, True])
def test_custom_matrix_extends_the_shipped_one(tmp_path: Path, *, by_variable: bool) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(OWN)
    target = make_target(tmp_path / "job", tensorflow="")
    options = () if by_variable else ("--matrix", own)
    done = kdoctor(*QUICK, "--python", target, *options, KDOCTOR_MATRIX=str(own) if by_variable else "")
    results = {result["id"]: result for result in json.loads(done.stdout)["results"]}
    assert results["versions.known-bad"]["findings"][0]["observed"] == "our models do not load"
    assert done.returncode == 1


def test_broken_matrix_is_a_usage_error(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(OWN.replace("our_own", "our_own\n  whem: {}"))
    done = kdoctor("check", "--checklist", "cpu-smoke", "--matrix", own)
    assert (done.returncode, done.stdout) == (2, "")
    assert "own.yaml" in done.stderr
    assert "whem" in done.stderr


def test_release_missing_in_matrix_is_unknown(tmp_path: Path) -> None:
    target = make_target(tmp_path / "job", tensorflow="")
    (metadata,) = target.glob("lib/python*/site-packages/tensorflow-*.dist-info/METADATA")
    metadata.write_text("Metadata-Version: 2.1\nName: tensorflow\nVersion: 2.99.0\n")
    done = kdoctor(*QUICK, "--python", target)
    (result,) = [item for item in json.loads(done.stdout)["results"] if item["id"] == "versions.known-bad"]
    assert result["status"] == "unknown"
    assert done.returncode == 3
