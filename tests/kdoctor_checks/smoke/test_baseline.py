from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import package, packages, smoke_case, smoke_run, target
from kdoctor.engine.report import Result
from kdoctor.facts import Environment, PackageFault, SmokeRun, Weights
from kdoctor.model import Action, Finding, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.baseline import baseline
from kdoctor_checks.smoke.uneven_final_batch import uneven_final_batch

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
    for part in ("8 replicas (gpu)", "6 variables", "losses 1, 0.5", "9e-08", "import 3.3 s", "build 0.2 s", "900 MiB"):
        assert part in observed


def test_passes_on_cpu_replicas() -> None:
    run = smoke_run("smoke.baseline", 2, smoke_case("mirrored", 2, "CPU"), devices_kind="cpu", gpus_seen=None)
    assert compute_check(baseline, run).status is Status.PASS


def _one_replica(**changes: Any) -> SmokeRun:
    return smoke_run("smoke.baseline", 1, smoke_case("mirrored", 1, **changes))


def test_one_replica_is_compared_with_numpy() -> None:
    result = compute_check(baseline, _one_replica(measures={"numpy": 1.0}, weight_deviation=9e-8))
    assert result.status is Status.PASS
    assert "9e-08 of NumPy" in result.evidence[0].observed
    finding = _finding(compute_check(baseline, _one_replica(measures={"numpy": 1.0}, weight_deviation=0.05)))
    assert "NumPy" in finding.expected


@pytest.mark.parametrize("measures", [{}, {"numpy": None}])
def test_one_replica_is_not_compared_with_itself(measures: dict[str, Any]) -> None:
    result = compute_check(baseline, _one_replica(measures=measures))
    assert result.status is Status.UNKNOWN
    assert "one replica" in (result.reason or "")


@pytest.mark.parametrize(
    "changes",
    [{"losses": (1.0, 2.0)}, {"weights": Weights(variables=6, mirrored=6, nonfinite=("a",), replicas_agree=True)}],
)
def test_one_replica_that_trains_wrongly_fails(changes: dict[str, Any]) -> None:
    assert compute_check(baseline, _one_replica(**changes)).status is Status.FAIL


def test_is_unknown_without_a_result() -> None:
    run = replace(_run(), cases=())
    result = compute_check(baseline, run)
    assert result.status is Status.UNKNOWN
    assert "MirroredStrategy" in (result.reason or "")
    assert compute_check(baseline, missing={SmokeRun: "none"}).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"weights": None}, "weights were not read"),
        ({"weight_deviation": None}, "weights were not compared"),
        ({"reference_losses": ()}, "losses were not compared"),
        ({"losses": (1.0,)}, "fewer than two epochs"),
        ({"replicas": None}, "number of replicas"),
        (
            {"weights": Weights(variables=0, mirrored=0, nonfinite=(), replicas_agree=None)},
            "the model has no trainable variables",
        ),
    ],
)
def test_is_unknown_if_evidence_is_missing(changes: dict[str, Any], reason: str) -> None:
    result = compute_check(baseline, _run(**changes))
    assert result.status is Status.UNKNOWN
    assert reason in (result.reason or "")


def test_wrong_backend_fails_with_its_fix() -> None:
    run = replace(_run(), cases=(), failure="WrongBackendError: keras 3.15.1 computes with jax (KERAS_BACKEND ...")
    remedy = _finding(compute_check(baseline, run)).remedy
    assert remedy.commands == ("export KERAS_BACKEND=tensorflow",)
    assert "--strategy data-parallel" in remedy.summary


def test_fails_if_tensorflow_cannot_be_imported() -> None:
    run = replace(_run(), cases=(), failure="ImportError: libcudart.so.12: cannot open")
    finding = _finding(compute_check(baseline, run))
    assert finding.subject == "import tensorflow"
    assert "libcudart" in finding.observed


def _fails_to_import(*facts: Any, **fault: Any) -> Finding:
    known = PackageFault(package="protobuf", version="7.36.2", files=59, **fault)
    run = replace(_run(), cases=(), failure="ImportError: no", faults=(known,))
    return _finding(compute_check(baseline, run, *facts))


def test_damaged_package_is_installed_again() -> None:
    finding = _fails_to_import(target(), packages(), missing=1, file="google/protobuf/message.py")
    (command,) = finding.remedy.commands
    assert command.endswith("-m pip install --force-reinstall --no-deps protobuf==7.36.2")
    assert "protobuf 7.36.2" in finding.brief
    assert "google/protobuf/message.py" in finding.observed


@pytest.mark.parametrize(
    ("fault", "stated"),
    [
        ({"missing": 1, "changed": 2}, "f.py is missing (3 of 59 files of protobuf 7.36.2): ImportError: no"),
        ({"missing": 0, "changed": 1}, "f.py is changed (1 of 59 files of protobuf 7.36.2): ImportError: no"),
    ],
)
def test_missing_and_changed_files_are_counted(fault: dict[str, int], stated: str) -> None:
    assert _fails_to_import(target(), packages(), file="f.py", **fault).observed == stated


def test_damaged_package_is_only_looked_at_without_the_interpreter_or_the_packages() -> None:
    for facts in ((), (target(),), (packages(),)):
        remedy = _fails_to_import(*facts, missing=1, file="f.py").remedy
        assert (remedy.commands, len(remedy.look)) == ((), 2)


@pytest.mark.parametrize(
    ("failure", "headline"),
    [
        ("ImportError: libcudart.so.12: cannot open", "libcudart.so.12: cannot open"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
        (f"ImportError: {'x' * 80}", "raises ImportError"),
    ],
)
def test_failed_import_has_a_short_form(failure: str, headline: str) -> None:
    run = replace(_run(), cases=(), failure=failure)
    assert _finding(compute_check(baseline, run)).headline == headline


@pytest.mark.parametrize(
    ("value", "command"),
    [
        ("/job/lib", "unset PYTHONPATH"),
        ("/job/lib/:/opt/other", "export PYTHONPATH=/opt/other"),
        ("/opt/other", "mv /job/lib/google /job/lib/renamed_google"),
        (None, "mv /job/lib/google /job/lib/renamed_google"),
    ],
)
def test_shadowing_file_is_taken_from_the_search_path(value: str | None, command: str) -> None:
    variables = Environment(variables={} if value is None else {"PYTHONPATH": value})
    assert _fails_to_import(variables, shadowed=True, file="/job/lib/google/__init__.py").remedy.commands == (command,)


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        (
            {"outcome": "raised", "error_type": "ValueError", "error_message": "no\nmore", "phase": "train"},
            ("ValueError in phase train: no",),
        ),
        (
            {"outcome": "timed-out", "phase": "train", "seconds": 240.1, "stacks": HANG},
            ("phase train", "240 s", "eager/execute.py:53 quick_execute", "src/trainer.py:77 fit"),
        ),
        (
            {"outcome": "died", "signal": "SIGSEGV", "phase": "strategy", "stderr_tail": "a\nlast one\n"},
            ("SIGSEGV in phase strategy", '"last one"'),
        ),
        ({"outcome": "died", "signal": "SIGKILL", "phase": "train"}, ("SIGKILL in phase train",)),
        ({"outcome": "died", "exit_code": 3, "phase": None}, ("status 3",)),
    ],
)
def test_unfinished_training_fails_with_how_it_ended(changes: dict[str, Any], parts: tuple[str, ...]) -> None:
    finding = _finding(compute_check(baseline, _run(**changes)))
    assert finding.subject == "MirroredStrategy"
    assert all(part in finding.observed for part in parts)
    assert "threading.py" not in finding.observed
    assert finding.remedy.summary


def test_fix_of_a_kill_is_memory_and_of_a_hang_is_nccl() -> None:
    killed = _finding(compute_check(baseline, _run(outcome="died", signal="SIGKILL")))
    assert "free -h" in killed.remedy.look
    hung = _finding(compute_check(baseline, _run(outcome="timed-out")))
    assert "export NCCL_DEBUG=INFO" in hung.remedy.look


@pytest.mark.parametrize("requested", [8, None])
def test_silent_cpu_training_fails(requested: int | None) -> None:
    case = smoke_case("mirrored", 1, "CPU")
    run = smoke_run("smoke.baseline", 8, case, replicas_requested=requested, gpus_seen=0)
    finding = _finding(compute_check(baseline, run))
    assert finding.subject == "MirroredStrategy"
    assert "0 GPUs" in finding.observed
    assert "device:CPU:0" in finding.observed
    assert {"versions.cuda-libraries", "gpu.replicas-match"} <= set(finding.explained_by)


@pytest.mark.parametrize(
    ("kind", "made", "requested", "expected", "headline"),
    [
        ("gpu", 7, 8, "8 replicas, each on its GPU", "7 replicas instead of 8"),
        ("gpu", 2, 1, "1 replica, each on its GPU", "2 replicas instead of 1"),
        ("cpu", 1, 2, "2 replicas", "1 replica instead of 2"),
    ],
)
def test_number_of_replicas_is_stated_with_the_requested_one(
    kind: Any, made: int, requested: int, expected: str, headline: str
) -> None:
    run = smoke_run("smoke.baseline", requested, smoke_case("mirrored", made, kind.upper()), devices_kind=kind)
    finding = _finding(compute_check(baseline, run))
    assert (finding.expected, finding.headline) == (expected, headline)
    assert "raised no error" not in finding.observed


def test_training_without_a_gpu_states_that_no_error_was_raised() -> None:
    case = smoke_case("mirrored", 1, "CPU")
    run = smoke_run("smoke.baseline", 8, case, replicas_requested=None, gpus_seen=0)
    finding = _finding(compute_check(baseline, run))
    assert finding.expected == "at least 1 replica, each on its GPU"
    assert finding.headline == "trains on the CPU with 1 replica, without an error"
    assert finding.observed.endswith("; TensorFlow lists 0 GPUs and raised no error")


def test_one_replica_of_two_on_the_cpu_fails() -> None:
    devices = tuple(f"/job:localhost/replica:0/task:0/device:{name}" for name in ("GPU:0", "CPU:0"))
    run = smoke_run("smoke.baseline", 2, smoke_case("mirrored", 2, devices=devices))
    assert _finding(compute_check(baseline, run)).headline.startswith("trains on the CPU with 2 replicas")


def test_copies_that_were_not_compared_are_unknown() -> None:
    unread = Weights(variables=6, mirrored=6, nonfinite=(), replicas_agree=None)
    result = compute_check(baseline, _run(weights=unread))
    assert [item.reason for item in result.unjudged] == ["whether the replicas hold equal weights was not read"]
    assert compute_check(baseline, _one_replica(weights=unread, measures={"numpy": 1.0})).status is Status.PASS


@pytest.mark.parametrize(
    ("replicas", "kind", "changes", "brief"),
    [
        (8, "gpu", {"weight_deviation": 9e-8}, "8 replicas, same weights as 1 device (within 9e-08)"),
        (2, "cpu", {}, "2 CPU replicas, same weights as 1 device"),
        (1, "gpu", {"measures": {"numpy": 1.0}}, "1 replica, same weights as NumPy"),
    ],
)
def test_line_of_a_good_training_counts_its_replicas(
    replicas: int, kind: Any, changes: dict[str, Any], brief: str
) -> None:
    case = smoke_case("mirrored", replicas, kind.upper(), **changes)
    result = compute_check(baseline, smoke_run("smoke.baseline", replicas, case, devices_kind=kind))
    assert [item.brief for item in result.evidence] == [brief]


def test_fewer_replicas_than_requested_fail() -> None:
    run = smoke_run("smoke.baseline", 8, smoke_case("mirrored", 7), gpus_seen=7)
    assert "7 replicas" in _finding(compute_check(baseline, run)).observed


@pytest.mark.parametrize(
    ("weights", "decisive"),
    [
        ({"mirrored": 5}, "5 of 6"),
        ({"nonfinite": ("a", "b", "c", "d")}, "a, b, c and 1 more"),
        ({"replicas_agree": False}, "different weights"),
    ],
)
def test_replicas_out_of_sync_fail(weights: dict[str, Any], decisive: str) -> None:
    values = {"variables": 6, "mirrored": 6, "nonfinite": (), "replicas_agree": True, **weights}
    assert decisive in _finding(compute_check(baseline, _run(weights=Weights(**values)))).observed


@pytest.mark.parametrize("losses", [(1.0, 1.0), (1.0, None), (1.0, 2.0)])
def test_loss_that_does_not_fall_fails(losses: tuple[float | None, ...]) -> None:
    finding = _finding(compute_check(baseline, _run(losses=losses, reference_losses=losses)))
    assert finding.remedy.action is Action.INSPECT_HARDWARE


def test_different_weights_fail_with_fix_and_rollback() -> None:
    run = replace(_run(weight_deviation=0.05), keras="keras 3.6.0")
    finding = _finding(compute_check(baseline, run, target(), packages(package("keras", "3.6.0"))))
    assert "0.05, above the tolerance of 0.0001 (keras 3.6.0, 8 replicas)" in finding.observed
    assert finding.remedy.commands[0].endswith("install 'keras>=3.10'")
    assert finding.rollback.commands[0].endswith("install keras==3.6.0")


def test_keras_without_the_defect_is_not_upgraded() -> None:
    finding = _finding(compute_check(baseline, _run(weight_deviation=0.05)))
    assert finding.remedy.action is Action.CHANGE_CODE
    assert finding.remedy.commands == ()


def test_tolerance_is_a_parameter() -> None:
    assert compute_check(baseline, _run(weight_deviation=0.05), tolerance=0.1).status is Status.PASS


def test_different_losses_alone_fail() -> None:
    run = replace(_run(losses=(1.0, 0.5), reference_losses=(1.0, 0.55)), keras="keras 3.8.0")
    finding = _finding(compute_check(baseline, run))
    assert "1, 0.5 instead of 1, 0.55" in finding.observed
    assert finding.remedy.commands == ("pip install 'keras>=3.10'",)
    assert finding.rollback.commands == ("pip install keras==3.8.0",)


@pytest.mark.parametrize(
    ("keras", "explained"), [("keras 3.6.0", True), ("keras 3.8.0", False), ("keras 3.15.1", False)]
)
def test_different_weights_are_explained_by_a_keras_with_that_defect(keras: str, *, explained: bool) -> None:
    finding = _finding(compute_check(baseline, replace(_run(weight_deviation=0.05), keras=keras)))
    assert ("versions.keras-compatible" in finding.explained_by) is explained
    assert bool(finding.remedy.commands) is explained


def test_missing_result_of_another_training_is_explained_by_the_failed_import() -> None:
    run = replace(_run(), cases=(), tensorflow=None, failure="ModuleNotFoundError: No module named 'wrapt'")
    (first, *_) = compute_check(uneven_final_batch, replace(run, scenario="smoke.uneven-final-batch")).unjudged
    assert {"versions.package-conflicts", "smoke.baseline"} <= set(first.explained_by)


def test_versions_that_were_not_read_are_left_out() -> None:
    unread = replace(_run(), keras=None, tensorflow=None)
    assert "; weights within 0 of one device; Keras unknown, import 3.3 s" in (
        compute_check(baseline, unread).evidence[0].observed
    )
    apart = Weights(variables=6, mirrored=5, nonfinite=(), replicas_agree=True)
    run = _run(weights=apart)
    known = _finding(compute_check(baseline, run)).remedy.summary
    assert "keras 3.15.1 with TensorFlow 2.21.0 does not" in known
    nameless = replace(run, keras=None, tensorflow=None)
    assert "this Keras with TensorFlow does not" in _finding(compute_check(baseline, nameless)).remedy.summary
