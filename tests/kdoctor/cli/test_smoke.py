"""``kdoctor smoke`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.command import kdoctor, make_target

BROKEN = "raise ImportError('libcudart.so.12: cannot open shared object file')"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["basline"], "there is no scenario 'basline'; did you mean 'smoke.baseline'?"),
        (["--tier", "fast"], "--tier fast: it is one of quick, standard, full"),
        (["--strategy", "miror"], "did you mean 'mirrored'?"),
        (["--replicas", "0"], "--replicas"),
        (["--keep-artifacts", "/dev/null/here"], "--keep-artifacts /dev/null/here: Not a directory"),
    ],
)
def test_wrong_usage_is_told_at_once(arguments: list[str], words: str) -> None:
    done = kdoctor("smoke", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


def test_what_is_about_to_be_done_is_told_and_a_broken_tensorflow_fails(tmp_path: Path) -> None:
    target = make_target(tmp_path / "venv", tensorflow=BROKEN)
    kept = tmp_path / "kept"
    done = kdoctor(
        "smoke", "--tier", "standard", "--replicas", "2", "--python", target, "-f", "json", "--keep-artifacts", kept
    )
    assert "smoke-standard trains 18 scenarios" in done.stderr
    assert "on 2 CPU devices: about" in done.stderr
    report = json.loads(done.stdout)
    statuses = {result["id"]: result["status"] for result in report["results"]}
    assert done.returncode == 1
    assert statuses["smoke.baseline"] == "fail"
    assert "pass" not in {status for name, status in statuses.items() if name.startswith("smoke.")}
    assert (kept / "runner-tensorflow.stacks").exists()
    assert (kept / "runner-jax.stacks").exists()


def test_scenarios_are_listed_by_tier_and_explained() -> None:
    listed = kdoctor("list", "--scenarios").stdout
    assert [line for line in listed.splitlines() if line.startswith("scenarios of tier")] == [
        "scenarios of tier quick",
        "scenarios of tier standard",
        "scenarios of tier full",
    ]
    assert "smoke.lost-worker (failure-path, multi-worker)" in listed
    explained = kdoctor("explain", "smoke.lost-worker").stdout
    for words in ("dies, never-comes", "full, multi-worker", "Each case has 240 s"):
        assert words in explained


@pytest.mark.tensorflow
def test_one_scenario_alone_passes_and_leaves_what_it_wrote(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done = kdoctor(
        "smoke", "closed-form", "--replicas", "2", "-f", "json", "--keep-artifacts", kept, TF_USE_LEGACY_KERAS="0"
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"], report["checklist"]["name"]) == (0, "pass", "smoke-chosen")
    assert "smoke-chosen trains 1 scenario (1 case) on 2 CPU devices" in done.stderr
    smoke = {result["id"]: result["status"] for result in report["results"] if result["family"] == "smoke"}
    # No GPU works where the replicas are CPU devices.
    assert smoke == {"smoke.closed-form": "pass", "smoke.gpus-worked": "skip", "smoke.gpus-unslowed": "skip"}
    assert '"iterations": 12' in (kept / "smoke.closed-form.mirrored.events").read_text()


@pytest.mark.tensorflow
def test_a_strategy_that_is_not_for_here_is_no_pass() -> None:
    done = kdoctor("smoke", "--strategy", "tpu", "--replicas", "2")
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1].endswith("nothing was trained: smoke.tpu skipped")
