"""The scenarios about ``keras.distribution`` with the real JAX on virtual CPU devices, also with planted defects."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from helpers import smoke
from helpers.cases import cases
from helpers.tiers import every_second_day
from kdoctor.check import Check
from kdoctor.engine.report import Result
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Status
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor.smoke.session import PRELOAD, SmokeSettings
from kdoctor.testing import compute_check
from kdoctor_backends.checks.smoke.data_parallel import data_parallel
from kdoctor_backends.checks.smoke.model_parallel import model_parallel
from kdoctor_backends.scenarios import ON_JAX
from kdoctor_checks.smoke._cases import describe_end
from kdoctor_checks.smoke.baseline import baseline

pytestmark = [pytest.mark.tensorflow, every_second_day(0)]

ROUNDING = 1e-6

_SUMMED_GRADIENTS = """
plain = keras.optimizers.SGD.update_step

def summed(self, gradient, variable, learning_rate):
    distribution = keras.distribution.distribution()
    times = distribution.device_mesh.devices.size if distribution else 1
    plain(self, gradient * times, variable, learning_rate)

keras.optimizers.SGD.update_step = summed
"""

_WRONG_SHARDS = """
from keras.src.backend.jax import distribution_lib

plain = distribution_lib.distribute_data_input

def first_half_twice(batch, *args, **kwargs):
    half = len(batch) // 2
    return plain(np.concatenate([batch[:half], batch[:half]]), *args, **kwargs)

distribution_lib.distribute_data_input = first_half_twice
"""

_IGNORED_LAYOUT = """
keras.distribution.LayoutMap.__getitem__ = lambda self, key: None
"""

_WHOLE_OPTIMIZER = """
from keras.src import optimizers

plain = optimizers.SGD.add_variable_from_reference

def whole(self, reference_variable, *args, **kwargs):
    made = plain(self, reference_variable, *args, **kwargs)
    if reference_variable._layout is None:
        return made
    mesh = keras.distribution.distribution().device_mesh
    layout = keras.distribution.TensorLayout([None] * len(made.shape), mesh)
    # Keras 3.12, the last for Python 3.10, keeps JAX's form of the layout, a later one its own.
    is_own = isinstance(reference_variable._layout, keras.distribution.TensorLayout)
    made._layout = layout if is_own else layout.backend_layout
    made.assign(keras.distribution.distribute_tensor(np.asarray(made.value), layout))
    return made

optimizers.SGD.add_variable_from_reference = whole
"""


ELSEWHERE = ("smoke.data-parallel-features", "smoke.layout-map", "smoke.same-bits-jax")
"""``make test-smoke`` trains the features and the layouts, too; the same bits have their own tests."""
CHOSEN = [scenario for scenario in ON_JAX if scenario.id not in ELSEWHERE]


def trained(*ids: str, preload: tuple[str, ...] | None = None, **options: object) -> dict[str, SmokeRun]:
    wanted = [scenario for scenario in ON_JAX if scenario.id in ids] or CHOSEN
    given = {"XLA_FLAGS": smoke.QUICKLY_COMPILED, **{name: str(value) for name, value in options.items()}}
    where = smoke.context(**given)
    runs = smoke.run_scenarios(wanted, SmokeSettings(devices_kind="cpu", replicas=2, preload=preload), where).runs
    return {name: run for name, run in runs.items() if isinstance(run, SmokeRun)}


BASELINES: tuple[Check, ...] = (data_parallel, model_parallel)


def planted(
    folder: Path, defect: str, checks: tuple[Check, ...] = BASELINES
) -> tuple[dict[str, Result], dict[str, SmokeRun]]:
    """The check results and the runs of the baselines, with the defect in the child process."""
    text = "import keras\nimport keras.distribution\nimport numpy as np\n" + defect
    (folder / "planted_defect.py").write_text(text, encoding="utf-8")
    preload = (*PRELOAD["jax"], "planted_defect")
    runs = trained(*(check.id for check in checks), preload=preload, PYTHONPATH=folder)
    return {check.id: compute_check(check, runs[check.id]) for check in checks}, runs


def deviation(run: SmokeRun) -> float:
    """The largest deviation of the weights from one device in any case."""
    return max(case.weight_deviation or 0.0 for case in run.cases)


@pytest.fixture(scope="module")
def runs() -> dict[str, SmokeRun]:
    return trained(KERAS_BACKEND="tensorflow", XLA_FLAGS=f"--xla_cpu_enable_fast_math=false {smoke.QUICKLY_COMPILED}")


def _case(runs: dict[str, SmokeRun], scenario: str, name: str) -> SmokeCase:
    case = runs[scenario].case(name)
    assert case is not None, runs[scenario]
    return case


def test_all_cases_run_on_jax_without_tensorflow(runs: dict[str, SmokeRun]) -> None:
    assert {name: tuple(case.name for case in run.cases) for name, run in runs.items()} == {
        scenario.id: scenario.cases for scenario in CHOSEN
    }
    assert all(run.jax and run.keras and run.tensorflow is None and run.failure is None for run in runs.values())


@pytest.mark.parametrize("name", ["fit", "batch-normalization", "smaller-tail"])
def test_data_parallel_matches_one_device(runs: dict[str, SmokeRun], name: str) -> None:
    case = _case(runs, "smoke.data-parallel", name)
    assert (case.strategy, case.devices) == ("DataParallel", ("cpu:0", "cpu:1"))
    assert case.weights is not None
    assert case.weights.mirrored == case.weights.variables > 0
    assert case.weight_deviation is not None
    assert case.weight_deviation < ROUNDING


def test_indivisible_batch_is_refused_in_its_step(runs: dict[str, SmokeRun]) -> None:
    tail = _case(runs, "smoke.data-parallel-batches", "uneven-tail")
    assert tail.outcome == "raised"
    assert (tail.phase, tail.finished) == ("step 6", "step 5")
    assert "divi" in describe_end(tail)


@pytest.mark.parametrize(("name", "weights_left"), [("evaluate", 0), ("predict", 0), ("validation", 1)])
def test_indivisible_batch_is_refused_in_inference(runs: dict[str, SmokeRun], name: str, weights_left: int) -> None:
    case = _case(runs, "smoke.data-parallel-batches", name)
    assert (case.outcome, case.phase, case.final_batch) == ("raised", name, 3)
    assert case.measures["weights left"] == weights_left


def test_alternatives_to_an_indivisible_batch_match_one_device(runs: dict[str, SmokeRun]) -> None:
    difference = _case(runs, "smoke.data-parallel-batches", "padded").measures["difference"]
    assert difference is not None
    assert difference < ROUNDING
    deviation = _case(runs, "smoke.data-parallel-batches", "drop-remainder").weight_deviation
    assert deviation is not None
    assert deviation < ROUNDING


@pytest.mark.parametrize(("name", "devices", "bytes_held"), [("model-axis", 2, 0.505), ("data-and-model", 4, 0.503)])
def test_model_parallel_shards_variables(runs: dict[str, SmokeRun], name: str, devices: int, bytes_held: float) -> None:
    case = _case(runs, "smoke.model-parallel", name)
    assert len(case.devices) == devices
    assert case.weights is not None
    assert (case.weights.variables, case.weights.sharded, case.weights.mirrored) == (4, 3, 1)
    # Per device: half of three variables (4 x 8d, 8d, 8d x 1 for d devices), and all of the last.
    cut = 6 * 8 * devices
    assert case.measures["largest share"] == pytest.approx((cut / 2 + 1) / (cut + 1))
    assert case.measures["largest share"] == pytest.approx(bytes_held, abs=1e-3)
    assert case.measures["optimizer sharded"] == 3


@pytest.mark.smoke_full
def test_ignored_layout_is_refused_or_visible() -> None:
    runs = trained("smoke.layout-map")
    silent = _case(runs, "smoke.layout-map", "matches-nothing")
    assert silent.outcome == "trained"
    assert silent.weights is not None
    assert (silent.weights.sharded, silent.weights.mirrored) == (0, 4)
    assert {name: _case(runs, "smoke.layout-map", name).outcome for name in ("not-divisible", "unknown-axis")} == {
        "not-divisible": "raised",
        "unknown-axis": "raised",
    }


def test_summed_gradients_are_detected(tmp_path: Path) -> None:
    results, runs = planted(tmp_path, _SUMMED_GRADIENTS, BASELINES[:1])
    assert {result.status for result in results.values()} == {Status.FAIL}
    assert min(deviation(run) for run in runs.values()) > 1e-3


@pytest.mark.smoke_full
def test_dropped_batch_share_is_detected(tmp_path: Path) -> None:
    results, runs = planted(tmp_path, _WRONG_SHARDS)
    assert results["smoke.data-parallel"].status is Status.FAIL
    assert deviation(runs["smoke.data-parallel"]) > 1e-3


@pytest.mark.smoke_full
def test_unapplied_layout_is_detected(tmp_path: Path) -> None:
    results, runs = planted(tmp_path, _IGNORED_LAYOUT)
    assert results["smoke.model-parallel"].status is Status.FAIL
    assert {case.weights.sharded for case in runs["smoke.model-parallel"].cases if case.weights} == {0}
    assert results["smoke.data-parallel"].status is Status.PASS


@pytest.mark.smoke_full
def test_unsharded_optimizer_is_detected(tmp_path: Path) -> None:
    results, runs = planted(tmp_path, _WHOLE_OPTIMIZER)
    assert results["smoke.model-parallel"].status is Status.FAIL
    assert {case.weights.sharded for case in runs["smoke.model-parallel"].cases if case.weights} == {3}
    assert {case.measures["optimizer sharded"] for case in runs["smoke.model-parallel"].cases} == {0}


@cases(
    (("jax",), "JAX"),
    pytest.param(("jax", "numpy"), "JAX", marks=pytest.mark.smoke_full),
    pytest.param(("keras",), "Keras 3", marks=pytest.mark.smoke_full),
)
def test_cases_are_skipped_without_jax_or_keras(tmp_path: Path, absent: tuple[str, ...], reason: str) -> None:
    blocker = "import sys, importlib.machinery\nplain = importlib.machinery.PathFinder.find_spec\n"
    blocker += f"def find(name, *rest, **more):\n    return None if name in {absent} else plain(name, *rest, **more)\n"
    blocker += "importlib.machinery.PathFinder.find_spec = find\n"
    (tmp_path / "sitecustomize.py").write_text(blocker, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = trained("smoke.data-parallel", PYTHONPATH=path)["smoke.data-parallel"]
    assert {case.outcome for case in run.cases} == {"skipped"}
    result = compute_check(data_parallel, run)
    assert result.status is Status.SKIP
    assert reason in (result.reason or "")


@pytest.mark.smoke_full
def test_tensorflow_strategies_fail_with_jax_backend() -> None:
    where = smoke.context(KERAS_BACKEND="jax", TF_USE_LEGACY_KERAS="0")
    settings = SmokeSettings(devices_kind="cpu", replicas=2)
    run = smoke.run_scenarios(SCENARIOS[:1], settings, where).runs["smoke.baseline"]
    assert isinstance(run, SmokeRun)
    assert (run.failure or "").startswith("WrongBackendError: ")
    assert compute_check(baseline, run).status is Status.FAIL


_HANG = """
import time
import traceback
import jax
import keras
from kdoctor_target.training.jax import data_parallel, fit
from kdoctor_target.training.regression import make_batches

calls = []

def count(values):
    calls.append(1)
    if len(calls) == 3:
        time.sleep(60)
    return values

class Slow(keras.layers.Layer):
    def call(self, inputs):
        if {in_trace} and any(frame.name == "train_step" for frame in traceback.extract_stack()):
            time.sleep(60)
        return inputs

class Counted(keras.losses.Loss):
    def call(self, targets, outputs):
        losses = (targets - outputs) ** 2
        jax.debug.callback(count, losses.sum(), ordered=False)
        return losses

distribution = data_parallel(case)
case.phase("build")
with distribution.scope():
    model = keras.Sequential([keras.layers.Input((4,)), Slow(), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss=Counted())
    fit(case, model, make_batches(2, 4))
"""


def hung(folder: Path, *, in_trace: bool) -> SmokeCase:
    fake = replace(
        smoke.scenario(folder, deadline_s=9.0, hang=_HANG.format(in_trace=in_trace)),
        framework="jax",
        strategy="data-parallel",
    )
    case = smoke.only_case(fake, preload=PRELOAD["jax"])
    assert case.outcome == "timed-out", case
    return case


@pytest.mark.smoke_full
def test_hang_in_trace_is_located(tmp_path: Path) -> None:
    case = hung(tmp_path, in_trace=True)
    assert (case.phase, case.finished) == ("trace", "data")
    assert "in call" in (case.stacks or "")


@pytest.mark.smoke_full
def test_hang_in_step_is_located_despite_async_dispatch(tmp_path: Path) -> None:
    case = hung(tmp_path, in_trace=False)
    assert (case.phase, case.finished, case.steps) == ("step 3", "step 2", 2)


@pytest.mark.smoke_full
def test_fresh_interpreter_for_each_case_gives_same_results() -> None:
    wanted = [scenario for scenario in ON_JAX if scenario.id == "smoke.model-parallel"]
    settings = SmokeSettings(devices_kind="cpu", replicas=2, isolation="fresh")
    run = smoke.run_scenarios(wanted, settings, smoke.context()).runs["smoke.model-parallel"]
    assert isinstance(run, SmokeRun)
    assert compute_check(model_parallel, run).status is Status.PASS
