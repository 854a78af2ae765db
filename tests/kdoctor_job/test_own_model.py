"""``kdoctor check --model --data`` with working and broken functions."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.cases import cases
from helpers.command import kdoctor

JOB = """
import numpy as np, tensorflow as tf, time

tf.config.threading.set_intra_op_parallelism_threads(3)  # before there are devices

def build():
    layers = tf.keras.layers
    model = tf.keras.Sequential([tf.keras.Input((4,)), layers.Dense(8, activation="tanh"), layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.05), "mean_squared_error")
    return model

def data():
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    numbers = np.random.RandomState(1).rand(160, 4).astype("float32")
    return tf.data.Dataset.from_tensor_slices((numbers, numbers[:, :1])).batch(16 * replicas).prefetch(1)

def wide():
    return np.zeros((64, 5), "float32"), np.zeros((64, 1), "float32")

LIMIT = 0.02

def with_features(base, optimizer, dropout, **options):
    keras = tf.keras
    inputs = keras.Input((4,))
    hidden = dropout(keras.layers.Dense(8, activation="tanh")(inputs))
    model = base(inputs, keras.layers.Dense(1)(hidden))
    model.compile(optimizer, "mean_squared_error", **options)
    return model

def clips_steps_and_drops():
    optimizer = tf.keras.optimizers.SGD(0.05, clipnorm=LIMIT)
    return with_features(tf.keras.Model, optimizer, tf.keras.layers.Dropout(0.5), steps_per_execution=8)

class Clipping(tf.keras.Model):
    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=inputs, y=targets, y_pred=self(inputs, training=True))
        replica = tf.distribute.get_replica_context()
        gradients = replica.all_reduce("sum", tape.gradient(loss, self.trainable_variables))
        gradients, _ = tf.clip_by_global_norm(gradients, LIMIT)
        shares = [gradient / replica.num_replicas_in_sync for gradient in gradients]
        self.optimizer.apply_gradients(zip(shares, self.trainable_variables))
        total = replica.all_reduce("sum", loss)
        for metric in self.metrics:
            metric.update_state(total)
        return {metric.name: metric.result() for metric in self.metrics}

class ReplicaDropout(tf.keras.layers.Dropout):
    def call(self, inputs, training=False):
        if not training:
            return inputs
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        seed = tf.cast(self.seed_generator.next(), tf.int32) + tf.stack([0, tf.cast(replica, tf.int32)])
        return tf.nn.experimental.stateless_dropout(inputs, self.rate, seed=seed)

def corrected():
    return with_features(Clipping, tf.keras.optimizers.SGD(0.05), ReplicaDropout(0.5))

def plain(base=tf.keras.Model, dropout=lambda hidden: hidden, limit=None, **options):
    return with_features(base, tf.keras.optimizers.SGD(0.05, clipnorm=limit), dropout, **options)

def clips():
    return plain(limit=LIMIT)

def clips_in_train_step():
    return plain(Clipping)

def eight_steps():
    return plain(steps_per_execution=8)

def one_step():
    return plain(steps_per_execution=1)

def drops():
    return plain(dropout=tf.keras.layers.Dropout(0.5))

def drops_per_replica():
    return plain(dropout=ReplicaDropout(0.5))

class OnItsStrategy:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])

    def inside():
        with OnItsStrategy.strategy.scope():
            return build()

    def outside():
        model = build()
        with tf.distribute.MirroredStrategy().scope():
            model.compile(tf.keras.optimizers.SGD(0.05), "mean_squared_error")
        return model

    def data():
        return data().unbatch().batch(16 * OnItsStrategy.strategy.num_replicas_in_sync).prefetch(1)

def sets_devices_late():
    tf.config.threading.set_intra_op_parallelism_threads(5)  # OnItsStrategy has made devices
    return build()

def hangs():
    print("noise on stdout")
    time.sleep(600)

def dies():
    import os
    os._exit(7)
"""
LOOP = """
import keras, numpy as np, pathlib, tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
batch = 8 * strategy.num_replicas_in_sync
x = np.random.RandomState(1).rand(64, 8).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).shuffle(64).batch(batch)
with strategy.scope():
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dropout(0.3), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    summed = {{"synchronization": tf.VariableSynchronization.ON_READ, "aggregation": tf.VariableAggregation.SUM}}
    totals = [tf.Variable(tf.zeros(one.shape), trainable=False, **summed) for one in model.trainable_variables]

def finite(loss):
    if tf.math.is_nan(loss):
        loss = tf.zeros_like(loss)
    return loss

def average(losses):
    return tf.nn.compute_average_loss(losses, global_batch_size=batch)

def update(x, y, reduced):
    with tf.GradientTape() as tape:
        losses = keras.losses.mean_squared_error(y, model(x, training=True))
        loss = finite(reduced(losses))
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

def step(x, y):
    update(x, y, {first})
    update(x, y, {then})

@tf.function
def train(x, y):
    strategy.run(step, args=(x, y))

@tf.function
def train_all(batches):
    for x, y in batches:
        train(x, y)

def add_up_twice(x, y):
    with tf.GradientTape() as tape:
        loss = average(keras.losses.mean_squared_error(y, model(x, training=True)))
    gradients = tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, model.trainable_variables))
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

def add(x, y):
    with tf.GradientTape() as tape:
        loss = average(keras.losses.mean_squared_error(y, model(x, training=True)))
    for total, one in zip(totals, tape.gradient(loss, model.trainable_variables)):
        total.assign_add(one / 2)

def apply():
    model.optimizer.apply_gradients(zip(totals, model.trainable_variables))

def add_up(batches):
    for number, (x, y) in enumerate(batches):
        strategy.run(tf.function(add), args=(x, y))
        if number % 2:
            strategy.run(apply)

batches = strategy.experimental_distribute_dataset(dataset)
try:
    {loop}
finally:
    pathlib.Path("saved").touch()
"""
TIMED = {"job.input-bound"}
"""Depends on the speed of this machine."""
ONLY = ("--checklist", "cpu-smoke", "--no-smoke", "--select", "job", "--format", "json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with the job's module."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "train.py").write_text(JOB)
    return tmp_path


def report_of(folder: Path, *arguments: str) -> dict[str, Any]:
    done = kdoctor("check", *ONLY, *arguments, cwd=folder, timeout_s=300)
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == report["exit_code"], done.stderr
    return report


def statuses(report: dict[str, Any]) -> dict[str, str]:
    return {result["id"]: result["status"] for result in report["results"] if result["family"] == "job"}


@pytest.mark.tensorflow
def test_good_job_passes_live_and_from_snapshot(folder: Path) -> None:
    named = ("--model", "jobs.train:build", "--data", "jobs.train:data", "--steps", "3")
    report = report_of(folder, *named, "--save-snapshot", "job.json")
    assert report["exit_code"] == 0, report
    found = statuses(report)
    not_here = (
        "first-step loss-input memory-headroom monitors on-gpus other-fits restores resumes-exactly save-interval saves"
        " schedule several-workers"
    )
    assert {found.pop(f"job.{name}") for name in not_here.split()} == {"skip"}
    assert found.pop("job.input-bound") in ("pass", "fail")
    assert set(found.values()) == {"pass"}
    assert len(found) == 24
    again = report_of(folder, "--snapshot", "job.json")
    assert {name: status for name, status in statuses(again).items() if name in found} == found


@pytest.mark.tensorflow
@cases(
    pytest.param("inside", "job.equals-one-device", "pass", marks=pytest.mark.smoke_full),
    ("outside", "job.model-in-scope", "fail"),
)
def test_strategy_of_the_job_has_the_replicas_of_the_examination(
    folder: Path, model: str, check: str, status: str
) -> None:
    named = (f"jobs.train:OnItsStrategy.{model}", "--data", "jobs.train:OnItsStrategy.data", "--steps", "2")
    found = statuses(report_of(folder, "--model", *named))
    assert found.pop(check) == status
    assert [name for name in found.keys() - TIMED if found[name] == "fail"] == []


WORKERS = """
def workers(number):
    addresses = {"worker": ["localhost:1"] * number}
    return tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec(addresses), "", "worker", 0)
"""


@pytest.mark.tensorflow
@cases(
    ("MultiWorkerMirroredStrategy(workers(1))", "pass", "in place of MultiWorkerMirroredStrategy"),
    pytest.param("MultiWorkerMirroredStrategy(workers(2))", "pass fail", "2 workers", marks=pytest.mark.smoke_full),
    pytest.param("get_strategy()", "pass", "the script makes no strategy without GPUs", marks=pytest.mark.smoke_full),
    pytest.param("LEGACY()", "unknown", "export TF_USE_LEGACY_KERAS=1", marks=pytest.mark.smoke_full),
    pytest.param("DIVIDE()", "unknown", "logical devices are not made here", marks=pytest.mark.smoke_full),
    pytest.param("OWN()", "unknown", "the job defines its strategy (Own)", marks=pytest.mark.smoke_full),
)
def test_script_is_examined_at_its_fit(folder: Path, made: str, expected: str, said: str) -> None:
    legacy = "    import os; os.environ['TF_USE_LEGACY_KERAS'] = '1'; model = build()\n"
    scoped = f"with tf.distribute.{made}.scope():\n    model, drops = build(), tf.keras.layers.Dropout(0.5)\n"
    # Its function writes the seed on every replica, so no copy of the shuffle can be made.
    scoped += "shuffled = data().shuffle(9).map(lambda x, y: (drops(x, training=True), y)).prefetch(1)\n"
    scoped += "data = lambda: shuffled\n"
    divide = "tf.config.list_physical_devices('CPU')[0], [tf.config.LogicalDeviceConfiguration()] * 8"
    other = {
        "LEGACY()": f"if True:\n{legacy}",
        "DIVIDE()": f"tf.config.set_logical_device_configuration({divide})\nraise ValueError('no CPU:7')\n",
        "OWN()": "Own = type('Own', (tf.distribute.MirroredStrategy,), {})\nwith Own().scope():\n    model = build()\n",
    }
    lines = other.get(made, scoped)
    functions = JOB.partition("class OnItsStrategy")[0] + WORKERS
    (folder / "script.py").write_text(
        f"{functions}\n{lines}try:\n    model.fit(data(), epochs=90)\nfinally:\n    open('saved', 'w')\n"
    )
    report = report_of(folder, "--model", "script.py --name run7", "--steps", "2")
    found = {status for name, status in statuses(report).items() if name not in TIMED}
    assert found - {"skip"} == {*expected.split()}
    assert not (folder / "saved").exists()
    judged = [one for one in report["results"] if one["id"] in ("job.model-and-data", "job.several-workers")]
    assert said in json.dumps(judged)


RUN = "for x, y in batches: strategy.run(tf.function(step), args=(x, y))"
MEAN = "tf.reduce_mean"


@pytest.mark.tensorflow
@cases(
    ("average", MEAN, RUN, "times those of one device"),
    ("average", "average", "train_all(batches)", None),
    ("average", "average", "add_up(batches)", None),
    ("average", "average", RUN.replace("step", "add_up_twice"), "Leave out the all_reduce of the gradients"),
    pytest.param(MEAN, MEAN, RUN, "they are 2 times those of one device", marks=pytest.mark.smoke_full),
    pytest.param("average", "average", "train_all(dataset)", "trains the same batch", marks=pytest.mark.smoke_full),
    pytest.param(
        *("average", MEAN, "for x, y in dataset: model.train_on_batch(x, y)", "trains the same batch"),
        marks=pytest.mark.smoke_full,
    ),
)
def test_first_step_of_a_loop_is_examined(folder: Path, first: str, then: str, loop: str, problem: str | None) -> None:
    (folder / "script.py").write_text(LOOP.format(first=first, then=then, loop=loop))
    report = report_of(folder, "--model", "script.py")
    assert report["exit_code"] == (1 if problem else 0), report
    result = next(one for one in report["results"] if one["id"] == "job.first-step")
    assert result["evidence"] if problem is None else problem in json.dumps(result["findings"])
    assert not (folder / "saved").exists()


@pytest.mark.tensorflow
@cases(
    "tf.function(update)(x[:8], x[:8, :1], average)",
    pytest.param("while True: update(x[:8], x[:8, :1], average)", marks=pytest.mark.smoke_full),
)
def test_loop_on_one_device_is_an_error_next_to_a_strategy(folder: Path, loop: str) -> None:
    text = LOOP.format(first="average", then="average", loop=loop)
    for made, exit_code in (("MirroredStrategy()", 1), ("get_strategy()", 3)):
        (folder / "script.py").write_text(text.replace("MirroredStrategy()", made))
        report = report_of(folder, "--model", "script.py")
        assert report["exit_code"] == exit_code
        assert "script.py trains on one device, outside strategy.run" in json.dumps(report["results"])


@pytest.mark.tensorflow
def test_error_that_one_device_raises_too_is_not_one_of_the_replicas(folder: Path) -> None:
    report = report_of(folder, "--model", "jobs.train:build", "--data", "jobs.train:wide", "--steps", "2")
    (finding,) = next(one["findings"] for one in report["results"] if one["id"] == "job.trains")
    assert ", 5)" in finding["observed"]
    assert finding["remedy"]["summary"].startswith("One device raises an error, too")


@pytest.mark.smoke_full
def test_clipping_steps_per_execution_and_dropout_each_have_their_finding_until_corrected(folder: Path) -> None:
    data = ("--data", "jobs.train:data")
    wrong = report_of(folder, "--model", "jobs.train:clips_steps_and_drops", *data)
    assert wrong["exit_code"] == 1
    failed = {name for name, status in statuses(wrong).items() if status == "fail"} - TIMED
    assert failed == {"job.clipping", "job.steps-per-execution", "job.random-layers"}
    corrected = report_of(folder, "--model", "jobs.train:corrected", *data)
    assert corrected["exit_code"] == 0
    found = statuses(corrected)
    assert {found[name] for name in failed} == {"pass"}
    results = {result["id"]: result for result in corrected["results"]}
    assert "different numbers" in results["job.random-layers"]["evidence"][0]["observed"]


@pytest.mark.smoke_full
@cases(
    ("clips", "job.clipping", "clips_in_train_step"),
    ("eight_steps", "job.steps-per-execution", "one_step"),
    ("drops", "job.random-layers", "drops_per_replica"),
)
def test_job_with_one_feature_has_its_finding_until_corrected(
    folder: Path, wrong: str, check: str, corrected: str
) -> None:
    data = ("--data", "jobs.train:data")
    found = statuses(report_of(folder, "--model", f"jobs.train:{wrong}", *data))
    assert {name for name, status in found.items() if status == "fail"} - TIMED == {check}
    report = report_of(folder, "--model", f"jobs.train:{corrected}", *data)
    assert report["exit_code"] == 0
    found = statuses(report)
    assert found[check] == "pass"
    assert {name for name, status in found.items() if status in ("fail", "unknown")} - TIMED == set()


@pytest.mark.tensorflow
@cases(
    ("jobs.train:build", "jobs.read:data", "jobs.read"),
    ("jobs.train:sets_devices_late", "jobs.train:data", "cannot be modified after"),
    pytest.param("jobs.train:hangs", "jobs.train:data", "hung in phase model", marks=pytest.mark.smoke_full),
    pytest.param("jobs.train:build", "jobs.train:dies", "status 7 in phase data", marks=pytest.mark.smoke_full),
)
def test_broken_job_fails_one_check(folder: Path, model: str, data: str, named: str) -> None:
    report = report_of(folder, "--model", model, "--data", data, "--model-timeout", "4")
    assert report["exit_code"] == 1
    found = {name: status for name, status in statuses(report).items() if status != "skip"}
    assert found == {"job.model-and-data": "fail"}
    (finding,) = next(one["findings"] for one in report["results"] if one["id"] == "job.model-and-data")
    assert named in finding["observed"]
    assert "that returns" not in finding["remedy"]["summary"]


@cases(
    (("--model", "jobs.train", "--data", "jobs.train:data"), "--model jobs.train:"),
    (("--model", "a:b", "--data", "a/b.txt:c"), "--data a/b.txt:c:"),
    (("--model", "a:b"), "--model and --data"),
    (("--model", "a:b", "--data", "a:c", "--fit", "2"), "--model train.py --fit 2"),
    (("--model", "a:b", "--data", "a:c", "--snapshot", "none.json"), "--model cannot be used with --snapshot"),
)
def test_malformed_job_options_are_usage_errors(arguments: tuple[str, ...], named: str) -> None:
    done = kdoctor("check", "--checklist", "cpu-smoke", *arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stdout == ""


def test_smoke_refuses_own_model_scenario() -> None:
    done = kdoctor("smoke", "own-model")
    assert done.returncode == 2
    assert "kdoctor check --model train.py" in done.stderr


def test_file_in_the_working_folder_that_hides_tensorflow_is_found(folder: Path) -> None:
    (folder / "tensorflow.py").write_text("")
    named = ("--model", "jobs.train:build", "--data", "jobs.train:data", "--select", "versions.packages-intact")
    done = kdoctor("check", "--checklist", "cpu-smoke", "--format", "json", *named, cwd=folder)
    results = {result["id"]: result for result in json.loads(done.stdout)["results"]}
    (finding,) = results["versions.packages-intact"]["findings"]
    assert str(folder / "tensorflow.py") in finding["observed"]
