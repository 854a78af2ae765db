"""A job written for Keras 2 (``tf.keras``) with layers that Keras 2 and 3 implement differently, and its check."""

import json
import re
from pathlib import Path
from typing import Any

from helpers.command import kdoctor

JOB = """
import numpy as np
import tensorflow as tf

keras = tf.keras


def build():
    model = keras.Sequential([
        keras.layers.Conv2D(4, 3),
        keras.layers.BatchNormalization(),
        keras.layers.ReLU(),
        keras.layers.Dropout(0.3),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(3),
    ])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(0.004), loss=loss, metrics=["accuracy"])
    return model


def data():
    return batches(256)


def starving():
    return batches(257)


def batches(examples):
    numbers = np.random.RandomState(5)
    inputs = numbers.rand(examples, 8, 8, 3).astype("float32")
    made = tf.data.Dataset.from_tensor_slices((inputs, numbers.randint(0, 3, examples)))
    return made.batch(16 * tf.distribute.get_strategy().num_replicas_in_sync).prefetch(2)
"""
SCRIPT = "script"
"""In place of data: the job as a script, which makes no strategy."""
OF_THE_OBJECT = """
import kdoctor
from train import batches, keras, tf


class OnReplicas(keras.layers.Layer):
    def call(self, inputs):
        is_rounded = inputs.dtype != tf.float64 and tf.distribute.get_strategy().num_replicas_in_sync > 1
        return inputs * (1.1 if is_rounded else 1.0)


class WithoutCall(keras.Model):
    def __init__(self):
        super().__init__()
        self.part = keras.layers.Dense(3)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self.compiled_loss(data[1], self.part(tf.reshape(data[0], (-1, 192))))
        self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
        return {"loss": loss}


cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
keras.mixed_precision.set_global_policy("mixed_float16")
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    inputs = keras.Input((8, 8, 3))
    hidden = keras.layers.BatchNormalization()(keras.layers.ConvLSTM1D(3, 2, dropout=0.3)(OnReplicas()(inputs)))
    model = keras.Model(inputs, keras.layers.Dense(3)(keras.layers.GlobalAveragePooling1D()(hidden)))
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    copied = kdoctor.preflight(model, batches(64)).ok
    keras.mixed_precision.set_global_policy("float32")
    model = WithoutCall()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    print(copied and kdoctor.preflight(model, batches(64)).ok)
"""
"""A model that is copied and differs from one device as rounding does, not in float64; and one that only fit builds."""
TIMED = {"job.input-bound"}
"""Checks whose result depends on the speed of this machine."""


def judged(folder: Path, data: str, *arguments: str | Path, **variables: str) -> dict[str, dict[str, Any]]:
    """Write the job, check it, and return the results of the checks that were not skipped."""
    jobs = folder / "jobs"
    jobs.mkdir()
    (jobs / "train.py").write_text(JOB, encoding="utf-8")
    named: tuple[str, ...] = ("--model", "jobs.train:build", "--data", f"jobs.train:{data}")
    if data == SCRIPT:
        (jobs / "train.py").write_text(f"{JOB}build().fit(data())\n", encoding="utf-8")
        named = ("--model", "jobs.train")
    only = ("--checklist", "cpu-smoke", "--no-smoke", "--select", "job", "--format", "json")
    done = kdoctor("check", *only, *named, *arguments, cwd=folder, timeout_s=300, variables=variables)
    assert done.stdout, done.stderr
    results = [result for result in json.loads(done.stdout)["results"] if result["family"] == "job"]
    return {item["id"]: item for item in results if item["status"] != "skip" and item["id"] not in TIMED}


def assert_passed(found: dict[str, dict[str, Any]]) -> None:
    """Every check passed, and the weights differ from one device's only by rounding."""
    assert {name for name, result in found.items() if result["status"] != "pass"} == set()
    _, sgd = found["job.equals-one-device"]["evidence"]
    difference = re.search(r"relative difference (\S+)", sgd["observed"])
    assert difference
    assert float(difference[1]) < 1e-4, sgd


def failed(found: dict[str, dict[str, Any]]) -> list[str]:
    """The ids of the failed checks."""
    return [check for check, result in found.items() if result["status"] == "fail"]
