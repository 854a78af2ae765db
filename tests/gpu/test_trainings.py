"""Trainings on one GPU with the framework that is installed, their memory, and whether they repeat."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers import smoke
from helpers.command import captured, environ
from helpers.planted_scenario import planted_scenario
from helpers.real_gpu import Ran, Record, on_gpus, rehearsed, run_kdoctor
from kdoctor.catalog.load import load_catalog
from kdoctor.facts import Gpus, SmokeRun
from kdoctor.smoke.session import SmokeSettings

pytestmark = pytest.mark.gpu

HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
HAS_KERAS = importlib.util.find_spec("keras") is not None
HAS_JAX = importlib.util.find_spec("jax") is not None
HOT_S = 20
"""Seconds for which the GPUs are compared."""
DETERMINISTIC = "--xla_gpu_deterministic_ops=true"


CHECKLIST = """\
schema: kdoctor/checklist/v1
name: one-training
version: 1
owner: kdoctor
assumptions:
  gpus: {{at_least: 1}}
checks:
  - id: smoke.{scenario}
  - id: smoke.gpus-worked
  - id: smoke.gpus-unslowed
scenarios:
  - {{id: smoke.{scenario}, kind: baseline, strategy: {strategy}, replicas: gpus, expect: matches one device}}
without:
  edge-case: one training is enough here
  failure-path: one training is enough here
"""


JOB = """\
import numpy as np
import tensorflow as tf


def build():
    model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    return model


def data():
    numbers = np.ones((256, 8), "float32")
    return tf.data.Dataset.from_tensor_slices((numbers, numbers[:, :1])).batch(32)
"""


LOOP = """

def loop(folder):
    tf.keras.utils.set_random_seed(0)
    with tf.distribute.MirroredStrategy().scope():
        model = build()
        model.optimizer.build(model.trainable_variables)
        step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer, step=step)
    checkpoint.restore(tf.train.latest_checkpoint(folder))
    manager = tf.train.CheckpointManager(checkpoint, folder, 3)
    for batch in data().repeat().skip(int(step.numpy())):
        loss = model.train_on_batch(*batch)
        step.assign_add(1)
        if int(step.numpy()) % 3 == 0:
            manager.save()
        yield loss
"""


def framework() -> str:
    """The scenario that trains with the framework that is here."""
    if HAS_TENSORFLOW and HAS_KERAS:
        return "baseline"
    if HAS_JAX and HAS_KERAS:
        return "data-parallel"
    pytest.skip("neither TensorFlow nor JAX is installed with Keras")


@pytest.fixture(scope="module")
def trained(record: Record, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Ran]:
    """One training as a user runs it, with the facts of its cases."""
    scenario = framework()
    folder = tmp_path_factory.mktemp("training")
    snapshot = folder / "snapshot.json"
    return scenario, snapshot, train(record, scenario, snapshot)


def train(record: Record, scenario: str, snapshot: Path) -> Ran:
    """Run the scenario with deterministic operations, and save its facts."""
    checklist = snapshot.parent / "one-training.yaml"
    strategy = "mirrored" if scenario == "baseline" else scenario
    checklist.write_text(CHECKLIST.format(scenario=scenario, strategy=strategy), encoding="utf-8")
    options = ("--format", "json", "--save-snapshot", snapshot)
    variables = {"TF_DETERMINISTIC_OPS": "1", "XLA_FLAGS": "" if rehearsed() else DETERMINISTIC}
    done = run_kdoctor(
        record, "check", "--checklist", checklist, *on_gpus(), *options, folder=snapshot.parent, **variables
    )
    assert snapshot.is_file(), done.stderr
    return done


def cases(snapshot: Path, scenario: str) -> list[dict[str, Any]]:
    facts = json.loads(snapshot.read_text(encoding="utf-8"))["facts"]
    found: list[dict[str, Any]] = facts["smoke"]["runs"][f"smoke.{scenario}"]["cases"]
    return found


def test_training_finishes_on_the_gpu(trained: tuple[str, Path, Ran], record: Record) -> None:
    scenario, snapshot, done = trained
    record.row("Time of kdoctor", command=f"smoke {scenario}", exit_code=done.code, seconds=done.seconds)
    found = cases(snapshot, scenario)
    for case in found:
        record.row(
            "Trainings",
            scenario=scenario,
            case=case["name"],
            outcome=case["outcome"],
            devices=", ".join(case["devices"]),
            difference_to_one_device=case["weight_deviation"],
            seconds=case["seconds"],
            said=case["skip_reason"] or case["error_message"],
        )
    skipped = [case["skip_reason"] for case in found if case["outcome"] == "skipped"]
    if len(skipped) == len(found):
        pytest.skip(skipped[0])
    assert {case["outcome"] for case in found} == {"trained"}
    result = done.results[f"smoke.{scenario}"]
    assert result["status"] in ("pass", "skip"), result  # one replica has nothing to compare
    if not rehearsed():
        assert all("gpu" in device.lower() or "cuda" in device.lower() for device in found[0]["devices"])


def test_sampler_saw_the_training(trained: tuple[str, Path, Ran], record: Record) -> None:
    _, snapshot, done = trained
    sampling = json.loads(snapshot.read_text(encoding="utf-8"))["facts"]["gpu_sampling"]
    if sampling["state"] == "not-started":
        pytest.skip("no training ran on a GPU")
    for name in ("smoke.gpus-worked", "smoke.gpus-unslowed"):
        result = done.results[name]
        record.row("Sampled checks", check=name, status=result["status"], reason=result["reason"])
        assert result["status"] != "fail", result["findings"]


def test_memory_of_the_training_leaves_headroom(trained: tuple[str, Path, Ran], record: Record, gpus: Gpus) -> None:
    _, snapshot, _ = trained
    sampling = json.loads(snapshot.read_text(encoding="utf-8"))["facts"]["gpu_sampling"]
    peaks = {gpu["index"]: gpu["during"]["memory_used_bytes"] for gpu in sampling["gpus"]}
    if not any(peaks.values()):
        pytest.skip("no memory was sampled during a training on a GPU")
    for gpu in gpus.devices:
        peak, total = peaks.get(gpu.index), gpu.memory_total_bytes
        if peak and total:
            record.row("Memory", GPU=gpu.index, peak_MiB=peak["high"] / 1024**2, total_MiB=total / 1024**2)
            # kdoctor's trainings are small, and take no memory in advance.
            assert peak["high"] < 0.5 * total


def test_deterministic_training_repeats(trained: tuple[str, Path, Ran], record: Record, tmp_path: Path) -> None:
    scenario, snapshot, _ = trained
    first = {case["name"]: case["losses"] for case in cases(snapshot, scenario) if case["outcome"] == "trained"}
    if not first:
        pytest.skip("the first training did not finish")
    again = tmp_path / "again.json"
    train(record, scenario, again)
    second = {case["name"]: case["losses"] for case in cases(again, scenario)}
    for name, losses in first.items():
        equal = losses == second.get(name)
        record.row("Determinism", scenario=scenario, case=name, losses=str(losses), bit_equal=str(equal))
    assert {name: second.get(name) for name in first} == first


def test_products_and_copies_are_timed(record: Record, gpus: Gpus, tmp_path: Path) -> None:
    scenario = "compute" if framework() == "baseline" else "compute-jax"
    checklist = tmp_path / "speed.yaml"
    text = CHECKLIST.format(scenario=scenario, strategy="one-device" if scenario == "compute" else "data-parallel")
    checklist.write_text(text, encoding="utf-8")
    snapshot = tmp_path / "snapshot.json"
    options = ("--format", "json", "--save-snapshot", snapshot)
    done = run_kdoctor(record, "check", "--checklist", checklist, *on_gpus(), *options, folder=tmp_path)
    (case,) = cases(snapshot, scenario)
    result = done.results[f"smoke.{scenario}"]
    for place, device in enumerate(case["devices"]):
        rates = {f"{what}": case["measures"].get(f"{what} {place}") for what in ("tflops", "copy_gbs")}
        said = "; ".join(item["observed"] for item in result["evidence"][place : place + 1])
        record.row("Speed", scenario=scenario, device=device, **rates, said=said or result["reason"])
    if case["outcome"] == "skipped":
        pytest.skip(case["skip_reason"])
    assert case["outcome"] == "trained", case
    assert case["devices"]
    assert all(value and value > 0 for value in case["measures"].values())
    assert result["status"] == ("skip" if rehearsed() or len(gpus.devices) == 1 else "pass")  # one has no equal


def test_gpu_computes_the_same_bits(record: Record, gpus: Gpus, tmp_path: Path) -> None:
    scenario = "same-bits" if framework() == "baseline" else "same-bits-jax"
    checklist = tmp_path / "bits.yaml"
    text = CHECKLIST.format(scenario=scenario, strategy="mirrored" if scenario == "same-bits" else "data-parallel")
    own = f"- id: smoke.{scenario}\n"
    checklist.write_text(text.replace(own, f"{own}    parameters: {{hot_s: {HOT_S}}}\n"), encoding="utf-8")
    snapshot = tmp_path / "snapshot.json"
    options = ("--format", "json", "--save-snapshot", snapshot)
    done = run_kdoctor(record, "check", "--checklist", checklist, *on_gpus(), *options, folder=tmp_path)
    (case,) = cases(snapshot, scenario)
    if case["outcome"] == "skipped":
        pytest.skip(case["skip_reason"])
    result = done.results[f"smoke.{scenario}"]
    for place, device in enumerate(case["devices"]):
        measured = {"rounds": case["measures"]["rounds"], "seconds": case["measures"]["hot_s"]}
        said = "; ".join(item["observed"] for item in result["findings"] or result["evidence"][place + 1 : place + 2])
        record.row("Same bits", scenario=scenario, device=device, programs=len(case["programs"]), **measured, said=said)
    assert case["outcome"] == "trained", case
    assert result["status"] == "pass", result
    assert len(case["programs"]) >= (8 if rehearsed() else 9)
    if not rehearsed():
        assert case["measures"]["hot_s"] >= HOT_S


def test_flipped_bit_is_found_on_the_gpu(record: Record, tmp_path: Path) -> None:
    scenario = load_catalog().scenarios["smoke.same-bits" if framework() == "baseline" else "smoke.same-bits-jax"]
    plants = [("output", "product bfloat16", 0, "once"), ("output", "training", 0, "at-first")]
    settings = SmokeSettings(devices_kind="cpu" if rehearsed() else "gpu", replicas=1)
    planted = planted_scenario(scenario, tmp_path, plants)
    run = smoke.run_scenarios([planted], settings, smoke.context()).runs[scenario.id]
    assert isinstance(run, SmokeRun), run
    for (_, program, *_), case in zip(plants, run.cases[-len(plants) :], strict=True):
        assert case.outcome == "trained", case
        record.row(
            "Planted bits", case=case.name, found=str([(one.program, one.device) for one in case.bit_differences])
        )
        assert {(one.program, one.device, one.other) for one in case.bit_differences} == {(program, 0, None)}


CANARY = """
import json, time
import keras, numpy as np
import kdoctor

keras.utils.set_random_seed(1)
width = {width}
hidden = [keras.layers.Dense(width, "relu") for _ in range(4)]
model = keras.Sequential([keras.Input((width,)), *hidden, keras.layers.Dense(1)])
model.compile("sgd", "mse")
numbers = np.random.default_rng(1).standard_normal((64 * 256, width)).astype("float32")
watch = kdoctor.Watch(history=False, canary={canary})
began = time.monotonic()
while time.monotonic() < began + {seconds}:
    model.fit(numbers, numbers[:, :1], batch_size=256, verbose=0, callbacks=[watch])
    bits = next(result for result in watch.report.results if result.id == "watch.same-bits")
    print(json.dumps({{"status": bits.status.value, "said": [one.observed for one in bits.evidence] or bits.reason}}))
"""


def test_canary_runs_between_the_steps_of_a_fit(record: Record, tmp_path: Path) -> None:
    backend = "tensorflow" if framework() == "baseline" else "jax"
    script = tmp_path / "fit.py"
    script.write_text(CANARY.format(width=64 if rehearsed() else 4096, canary=0.05, seconds=3), encoding="utf-8")
    variables = {"KERAS_BACKEND": backend, "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    done = captured([sys.executable, str(script)], env=environ(**variables), timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    *_, last = map(json.loads, done.stdout.splitlines())
    record.row("Canary", backend=backend, status=last["status"], said=str(last["said"]))
    assert last["status"] == "pass"


SCRIPT = """
import tensorflow as tf
from job import build, data

for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
with tf.distribute.MirroredStrategy().scope():
    model = build()
model.fit(data(), epochs=90)
"""


def test_model_of_a_user_reports_its_memory(record: Record, tmp_path: Path) -> None:
    """Its script sets memory growth, after kdoctor has made the devices. Jobs of TensorFlow only are examined."""
    if not HAS_TENSORFLOW:
        pytest.skip("TensorFlow is not installed, and kdoctor examines models of TensorFlow jobs only")
    (tmp_path / "job.py").write_text(JOB, encoding="utf-8")
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    options = ("--model", "train.py", "--steps", "3", "--format", "json", "--select", "job")
    done = run_kdoctor(record, "check", *options, *on_gpus(), folder=tmp_path)
    assert done.results["job.model-and-data"]["status"] == "pass", done.results["job.model-and-data"]
    result = done.results["job.memory-headroom"]
    record.row("Memory headroom", status=result["status"], reason=result["reason"])
    assert result["status"] != "fail"


OWN_STEPS = """
strategy = tf.distribute.MirroredStrategy()

def step(x, y):
    with tf.GradientTape() as tape:
        losses = tf.reduce_mean(tf.math.squared_difference(y, model(x, training=True)), -1)
        loss = tf.nn.compute_average_loss(losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

train = tf.function(lambda x, y: strategy.run(step, args=(x, y)))
for batch in strategy.experimental_distribute_dataset(data()):
    train(*batch)
"""


def test_first_step_of_a_loop_is_that_of_the_cpu(record: Record, tmp_path: Path) -> None:
    if not HAS_TENSORFLOW:
        pytest.skip("TensorFlow is not installed, and kdoctor examines models of TensorFlow jobs only")
    (tmp_path / "job.py").write_text(JOB, encoding="utf-8")
    (tmp_path / "train.py").write_text(SCRIPT.replace("model.fit(data(), epochs=90)", OWN_STEPS), encoding="utf-8")
    options = ("--model", "train.py", "--format", "json", "--select", "job")
    result = run_kdoctor(record, "check", *options, *on_gpus(), folder=tmp_path).results["job.first-step"]
    record.row("First step", status=result["status"], said=str(result["evidence"]), reason=result["reason"])
    assert result["status"] == "pass", result


@pytest.mark.parametrize(
    ("checks", "options"),
    [
        (("job.restores", "job.save-interval"), ("--model", "job:build", "--data", "job:data", "--steps", "3")),
        (("job.loop-resumes",), ("--loop", "job:loop")),
    ],
    ids=["model", "loop"],
)
def test_killed_job_comes_back_on_the_gpu(
    checks: tuple[str, ...], options: tuple[str, ...], record: Record, tmp_path: Path
) -> None:
    if not HAS_TENSORFLOW:
        pytest.skip("TensorFlow is not installed, and kdoctor examines models of TensorFlow jobs only")
    (tmp_path / "job.py").write_text(JOB + LOOP, encoding="utf-8")
    (tmp_path / "saves").mkdir()
    given = (*options, "--restore", "saves", "--format", "json", "--select", "job")
    done = run_kdoctor(record, "check", *given, *on_gpus(), folder=tmp_path)
    for name in checks:
        result = done.results[name]
        seen = str([item["observed"] for item in (*result["evidence"], *result["findings"])])
        record.row("Restoring", check=name, status=result["status"], said=seen, reason=result["reason"])
        assert result["status"] == "pass", result
    assert not [*(tmp_path / "saves").iterdir()]
