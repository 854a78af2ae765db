from fnmatch import fnmatchcase
from typing import Any

import pytest
from packaging.version import Version

from helpers.cases import cases
from helpers.checks import ALL
from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.values import specifier
from kdoctor_checks import _builds, _causes
from kdoctor_checks.smoke import _fault_location, _gpu_usage
from kdoctor_checks.versions import keras_compatible

IDS = set(ALL)
MATRIX = load_matrix()


def _ids(value: object) -> list[str]:
    if isinstance(value, str):
        return [value] if value.partition(".")[0] in {item.partition(".")[0] for item in IDS} else []
    return [name for item in value for name in _ids(item)] if isinstance(value, tuple) else []


@pytest.mark.parametrize("module", [_builds, _causes, _fault_location, _gpu_usage, keras_compatible])
def test_named_checks_exist(module: Any) -> None:
    named = {name for value in vars(module).values() for name in _ids(value)}
    assert named
    assert {name for name in named if not any(fnmatchcase(check_id, name) for check_id in IDS)} == set()


@pytest.mark.parametrize("minor", range(16))
def test_defects_of_keras_are_those_of_the_matrix(minor: int) -> None:
    version = Version(f"3.{minor}.1")
    rows = {
        row.id for row in MATRIX.known_bad if "keras" in row.when and specifier(row.when["keras"]).contains(version)
    }
    weights = {"keras3_grads_not_reduced", "keras3_lr_times_replicas"} & rows
    assert _causes.WRONG_WEIGHTS.contains(version) == bool(weights)
    assert _causes.WRONG_LOSSES.contains(version) == bool(weights or "keras3_metrics_wrong_or_nan" in rows)


def run(scenario: str = "smoke.baseline", **changes: Any) -> SmokeRun:
    return smoke_run(scenario, 2, **changes)


@cases(
    ("keras 3.4.1", True, True),
    ("keras 3.7.0", True, True),
    ("keras 3.8.0", False, True),  # its weights are correct: another reason must make them wrong
    ("keras 3.10.0", False, False),
    ("keras 2.15.0", False, False),
    ("tf_keras 2.18.0", False, False),
    ("keras unknown", False, False),
    (None, False, False),
)
def test_keras_explains_only_what_its_release_gets_wrong(keras: str | None, *, weights: bool, losses: bool) -> None:
    assert ("versions.keras-compatible" in _causes.of_weights(run(keras=keras))) is weights
    assert ("versions.keras-compatible" in _causes.of_losses(run(keras=keras))) is losses


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_keras_on_another_backend_is_not_explained_by_tensorflow(backend: str) -> None:
    other = run("smoke.of-backend", keras="keras 3.6.0", tensorflow=None, **{backend: "2.7.0"})
    assert _causes.of_weights(other) == ("versions.known-bad",)
    assert _causes.of_losses(other) == ("versions.known-bad",)
    assert _causes.of_end(other, smoke_case(outcome="raised")) == ()
    assert _causes.of_import(run("smoke.of-backend", failure="it died", tensorflow=None, **{backend: "2.7.0"})) == ()


def test_baseline_comes_before_other_trainings() -> None:
    for explain in (_causes.of_weights, _causes.of_losses):
        assert "smoke.baseline" in explain(run("smoke.custom-loop"))
        assert "smoke.baseline" not in explain(run())


@cases(
    ("ModuleNotFoundError: No module named 'google.protobuf.internal'", False),
    ("ImportError: Keras cannot be imported. Check that it is installed.", True),
    ("ModuleNotFoundError: No module named 'jax'", True),
    ("WrongBackendError: keras 3.15.1 uses the torch backend", True),
)
def test_failed_import_is_explained_by_what_is_installed(failure: str, *, backend: bool) -> None:
    found = _causes.of_import(run("smoke.custom-loop", failure=failure, tensorflow=None, cases=()))
    assert {"versions.one-tensorflow", "versions.package-conflicts", "smoke.baseline"} <= set(found)
    assert ("versions.keras-compatible" in found) is backend


def test_failure_after_the_import_is_not_explained_by_it() -> None:
    assert _causes.of_import(run(failure="timed out after 1800 s")) == ()
    assert _causes.of_import(run()) == ()


@cases(
    (smoke_case(outcome="died", signal="SIGKILL"), "cpu", {"host.memory"}),
    (smoke_case(outcome="raised", error_type="ModuleNotFoundError"), "cpu", {"versions.package-conflicts"}),
    (
        smoke_case(outcome="raised", error_message="'cuModuleLoadData' failed with 'CUDA_ERROR_INVALID_PTX'"),
        "gpu",
        {"versions.gpu-code", "versions.driver-for-ptx"},
    ),
    (
        smoke_case(outcome="died", signal="SIGABRT", log_lines=("Loaded runtime CuDNN library: 9.1.0",)),
        "gpu",
        {"versions.cudnn-for-build"},
    ),
    (smoke_case(outcome="raised", error_type="ResourceExhaustedError"), "gpu", {"gpu.free"}),
    (
        smoke_case(outcome="raised", log_lines=("NCCL WARN Error while creating shared memory",)),
        "gpu",
        {"host.shared-memory"},
    ),
    (smoke_case(outcome="timed-out"), "gpu", {"topology.acs", "gpu.responding"}),
)
def test_end_of_a_training_is_explained_by_its_messages(case: SmokeCase, kind: str, expected: set[str]) -> None:
    assert expected <= set(_causes.of_end(run(devices_kind=kind), case))


def test_error_of_a_model_is_explained_by_nothing() -> None:
    case = smoke_case(outcome="raised", error_type="ValueError", error_message="shapes")
    assert _causes.of_end(run(devices_kind="cpu"), case) == ()


def test_no_gpu_has_other_causes_than_too_few() -> None:
    none, fewer = (_causes.of_replicas(run(gpus_seen=seen)) for seen in (0, 1))
    assert {"versions.cuda-libraries", "driver.loaded", "gpu.replicas-match"} <= set(none)
    assert "versions.cuda-libraries" not in fewer
    assert {"gpu.responding", "gpu.visible-to-driver", "gpu.replicas-match"} <= set(fewer)
    assert _causes.of_replicas(run(devices_kind="cpu")) == ()


@pytest.mark.parametrize(("kind", "explained"), [("gpu", True), ("cpu", False)])
def test_faulty_hardware_explains_wrong_weights_on_gpus_only(kind: str, *, explained: bool) -> None:
    assert ("topology.nvlink" in _causes.of_weights(run(devices_kind=kind))) is explained
    assert "topology.nvlink" not in _causes.of_losses(run(devices_kind=kind))


@pytest.mark.parametrize(("outcome", "explained"), [("died", True), ("raised", False), ("timed-out", False)])
def test_libraries_of_the_gpu_explain_a_crash(outcome: str, *, explained: bool) -> None:
    assert ("versions.gpu-code" in _causes.of_end(run(), smoke_case(outcome=outcome))) is explained
