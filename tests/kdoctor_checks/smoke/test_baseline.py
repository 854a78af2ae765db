from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import package, packages, smoke_case, smoke_run, target
from helpers.judging import compute_check
from kdoctor.engine.report import Result
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Finding, Status
from kdoctor_checks.smoke.baseline import baseline

HANG = """Timeout (0:03:58)!
Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait

Thread 0x00007f2 (most recent call first):
  File "/opt/job/lib/tensorflow/python/eager/execute.py", line 53 in quick_execute
  File "/opt/job/lib/keras/src/trainer.py", line 77 in fit
"""


def _run(**changes: Any) -> SmokeRun:
    return smoke_run("smoke.baseline", 8, replace(smoke_case("mirrored", 8), **changes))


def _finding(result: Result) -> Finding:
    assert result.status is Status.FAIL, result
    return result.findings[0].finding


def test_passes_with_its_numbers_as_evidence() -> None:
    result = compute_check(baseline, _run(weight_deviation=9e-8))
    assert result.status is Status.PASS
    observed = result.evidence[0].observed
    assert "8 replicas (gpu), 6 variables mirrored on each; losses 1, 0.5" in observed
    assert "import 3.3 s, build 0.2 s, first step 1 s, step 0.01 s, peak memory 900 MiB" in observed


@pytest.mark.parametrize("replicas", [1, 2])
def test_passes_on_cpu_replicas(replicas: int) -> None:
    case = smoke_case("mirrored", replicas, "CPU")
    run = smoke_run("smoke.baseline", replicas, case, devices_kind="cpu", gpus_seen=None)
    assert compute_check(baseline, run).status is Status.PASS


def test_is_unknown_without_a_result() -> None:
    run = replace(_run(), cases=())
    result = compute_check(baseline, run)
    assert (result.status, result.reason) == (
        Status.UNKNOWN,
        "case mirrored: the run ended before it had a result",
    )
    assert compute_check(baseline, missing={SmokeRun: "none"}).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"weights": None}, "its weights were not read"),
        ({"weight_deviation": None}, "its weights were not compared with one device"),
        ({"reference_losses": ()}, "its losses were not compared with one device"),
        ({"losses": (1.0,)}, "fewer than two epochs have a loss"),
        ({"replicas": None}, "the number of replicas is not known"),
    ],
)
def test_is_unknown_where_evidence_is_missing(changes: dict[str, Any], reason: str) -> None:
    result = compute_check(baseline, _run(**changes))
    assert result.status is Status.UNKNOWN
    assert reason in (result.reason or "")


def test_fails_with_the_way_out_where_keras_computes_with_something_else() -> None:
    run = replace(_run(), cases=(), failure="WrongBackendError: keras 3.15.1 computes with jax (KERAS_BACKEND ...")
    remedy = _finding(compute_check(baseline, run)).remedy
    assert remedy.commands == ("export KERAS_BACKEND=tensorflow",)
    assert "--strategy data-parallel" in remedy.summary


def test_fails_if_tensorflow_does_not_import() -> None:
    run = replace(_run(), cases=(), failure="ImportError: libcudart.so.12: cannot open")
    finding = _finding(compute_check(baseline, run))
    assert finding.subject == "import tensorflow"
    assert "libcudart" in finding.observed


@pytest.mark.parametrize(
    ("changes", "observed"),
    [
        (
            {"outcome": "raised", "error_type": "ValueError", "error_message": "no\nmore", "phase": "train"},
            "ValueError in phase train: no",
        ),
        (
            {"outcome": "timed-out", "phase": "train", "seconds": 240.1, "stacks": HANG},
            (
                "hung in phase train and was ended after 240 s at eager/execute.py:53 quick_execute, "
                "from src/trainer.py:77 fit"
            ),
        ),
        (
            {"outcome": "died", "signal": "SIGSEGV", "phase": "strategy", "stderr_tail": "a\nlast one\n"},
            'died of SIGSEGV in phase strategy; its last words: "last one"',
        ),
        ({"outcome": "died", "signal": "SIGKILL", "phase": "train"}, "died of SIGKILL in phase train"),
        ({"outcome": "died", "exit_code": 3, "phase": None}, "exited with status 3"),
    ],
)
def test_fails_if_it_did_not_finish_and_says_how(changes: dict[str, Any], observed: str) -> None:
    finding = _finding(compute_check(baseline, _run(**changes)))
    assert (finding.subject, finding.observed) == ("case mirrored", observed)
    assert finding.remedy.summary


def test_a_kill_points_at_memory_and_a_hang_on_gpus_at_nccl() -> None:
    killed = _finding(compute_check(baseline, _run(outcome="died", signal="SIGKILL")))
    assert "memory" in killed.remedy.summary
    hung = _finding(compute_check(baseline, _run(outcome="timed-out")))
    assert "export NCCL_DEBUG=INFO" in hung.remedy.commands


@pytest.mark.parametrize("requested", [8, None])
def test_fails_on_the_silent_cpu(requested: int | None) -> None:
    case = smoke_case("mirrored", 1, "CPU")
    run = smoke_run("smoke.baseline", 8, case, replicas_requested=requested, gpus_seen=0)
    finding = _finding(compute_check(baseline, run))
    assert finding.subject == "replicas"
    assert "TensorFlow lists 0 GPUs: it trained on the CPU and said nothing" in finding.observed


def test_fails_on_fewer_replicas_than_asked_for() -> None:
    run = smoke_run("smoke.baseline", 8, smoke_case("mirrored", 7), gpus_seen=7)
    assert "7 replicas" in _finding(compute_check(baseline, run)).observed


@pytest.mark.parametrize(
    ("weights", "observed"),
    [
        ({"mirrored": 5}, "5 of 6 trainable variables are mirrored on every replica"),
        ({"nonfinite": ("a", "b", "c", "d")}, "NaN or infinity in a, b, c and 1 more"),
        (
            {"replicas_agree": False},
            "the replicas hold different weights after the same steps (keras 3.15.1, 8 replicas)",
        ),
    ],
)
def test_fails_if_the_replicas_do_not_hold_together(weights: dict[str, Any], observed: str) -> None:
    values = {"variables": 6, "mirrored": 6, "nonfinite": (), "replicas_agree": True, **weights}
    assert _finding(compute_check(baseline, _run(weights=Weights(**values)))).observed == observed


@pytest.mark.parametrize("losses", [(1.0, 1.0), (1.0, None), (1.0, 2.0)])
def test_fails_if_the_loss_does_not_fall(losses: tuple[float | None, ...]) -> None:
    finding = _finding(compute_check(baseline, _run(losses=losses, reference_losses=losses)))
    assert finding.expected == "finite, and falling"


def test_fails_if_the_weights_are_not_one_devices_and_names_the_way_back() -> None:
    run = replace(_run(weight_deviation=0.05), keras="keras 3.6.0")
    finding = _finding(compute_check(baseline, run, target(), packages(package("keras", "3.6.0"))))
    assert finding.observed == "weights differ by up to 0.05 (tolerance 0.0001) (keras 3.6.0, 8 replicas)"
    assert finding.remedy.commands[0].endswith("install 'keras>=3.10'")
    assert finding.rollback.commands[0].endswith("install keras==3.6.0")


def test_a_keras_without_that_defect_is_not_to_be_upgraded() -> None:
    finding = _finding(compute_check(baseline, _run(weight_deviation=0.05)))
    assert "patched" in finding.remedy.summary
    assert finding.remedy.commands == ()


def test_the_tolerance_is_the_checklists() -> None:
    assert compute_check(baseline, _run(weight_deviation=0.05), tolerance=0.1).status is Status.PASS


def test_fails_if_only_the_losses_are_wrong() -> None:
    run = replace(_run(losses=(1.0, 0.5), reference_losses=(1.0, 0.55)), keras="keras 3.8.0")
    finding = _finding(compute_check(baseline, run))
    assert "fit reports losses of 1, 0.5, on one device 1, 0.55" in finding.observed
    assert finding.remedy.commands == ("pip install 'keras>=3.10'",)
    assert finding.rollback.commands == ("pip install 'keras==3.8.0'",)
