"""Trainings under ``kdoctor.Watch`` on two logical CPU devices, each with one planted fault or none.

``python -m helpers.kdoctor_watch.watched_jobs keras bit nan ...`` prints one JSON object with what each of them found.
"""

import importlib
import json
import logging
import math
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import kdoctor
from helpers.planted_bits import wrong_outputs

STEPS, BATCH = 40, 8


class Plants:
    """The trainings of one Keras package."""

    def __init__(self, keras: Any) -> None:
        self.keras = keras
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        self.found: list[str] = []

    def model(self, kind: str = "adam") -> Any:
        keras = self.keras
        keras.utils.set_random_seed(1)  # a weight that grows past a power of two can round the planted bit away
        with self.strategy.scope():
            model = keras.Sequential(
                [
                    keras.layers.Input((3,)),
                    keras.layers.Dense(7),
                    keras.layers.BatchNormalization(),
                    keras.layers.Dense(1),
                ]
            )
            model.compile("sgd" if kind == "sgd" else "adam", "mse", jit_compile=False)
        return model

    def data(self, bad_step: int | None = None) -> Any:
        values = np.random.default_rng(1).random((STEPS * BATCH, 3)).astype("float32")
        if bad_step is not None:
            values[bad_step * BATCH] = math.nan
        return tf.data.Dataset.from_tensor_slices((values, values.sum(axis=1, keepdims=True))).batch(BATCH)

    def fit(self, callbacks: list[Any], data: Any = None, **options: Any) -> kdoctor.Watch:
        settings = {"every": 10, "interval_s": 0.1, "history": False, **options}
        watch = kdoctor.Watch(on_finding=lambda found: self.found.append(f"{found.check} {found.step}"), **settings)
        model = self.model()
        model.fit(watch.data(data if data is not None else self.data()), verbose=0, callbacks=[*callbacks, watch])
        return watch

    def healthy(self) -> Any:
        folder = Path(tempfile.mkdtemp())
        model = self.model()
        watch = kdoctor.Watch(every=10, report=folder / "report.json", tensorboard=str(folder / "board"))
        model.fit(watch.data(self.data()), verbose=0, epochs=2, validation_data=self.data(), callbacks=[watch])
        return {**results(watch), "json": json.loads((folder / "report.json").read_text())["checklist"]["name"]} | {
            "board": sorted(
                {
                    value.tag
                    for path in (folder / "board").iterdir()
                    for event in tf.compat.v1.train.summary_iterator(str(path))
                    for value in event.summary.value
                }
            )
        }

    def single(self) -> Any:
        """A model outside of every strategy, and a NaN in step 37."""
        plants = Plants(self.keras)
        plants.strategy, plants.found = tf.distribute.get_strategy(), self.found
        return results(plants.fit([], self.data(bad_step=37)))

    def planted(self) -> Any:
        """The lowest bit of one value of one replica changes before step 24, and step 37 has a NaN."""

        def plant(model: Any) -> None:
            inner = model.layers[0].kernel
            inner = inner if callable(inner.value) else inner.value
            copy = inner.values[1]
            values = copy.numpy()
            values.view(np.uint32)[1, 2] ^= 1
            copy.assign(values)

        return results(self.fit([self.at(24, plant)], self.data(bad_step=37)))

    def canary(self) -> Any:
        """Fixed programs before many of the steps, and the same training without them."""
        keras = self.keras
        weights = []
        for canary in (None, 0.001):
            model = self.model()
            watch = kdoctor.Watch(every=10, history=False, canary=canary)
            model.fit(self.data(), verbose=0, callbacks=[watch])
            weights.append([*model.get_weights(), keras.random.uniform((3,)) if keras.__name__ == "keras" else 0.0])
        same = all(np.array_equal(one, other) for one, other in zip(*weights, strict=True))
        assert watch.report is not None
        seen = next(result for result in watch.report.results if result.id == "watch.same-bits").evidence[0].observed
        return {**results(watch), "same": same, "seen": seen}

    def wrong_at_first(self) -> Any:
        """The second device computes one wrong bit each time: it is not known which of the two is right."""
        return self.wrong_bit(first=0)

    def wrong_bit(self, first: int = 4) -> Any:
        """The second device computes one wrong bit from its fifth round on."""
        made: Any = importlib.import_module("kdoctor_target.training.same_bits_tensorflow")
        plain = made.make_programs
        plants = {1: lambda run: run >= first}

        def put(array: Any, place: int) -> Any:
            with tf.device(f"CPU:{place}"):
                return tf.constant(array)

        made.make_programs = lambda *given, **named: wrong_outputs(plain(*given, **named), put, "attention", plants)
        try:
            folder = Path(tempfile.mkdtemp())
            save = self.keras.callbacks.ModelCheckpoint(
                str(folder / "{batch}.weights.h5"), save_weights_only=True, save_freq=1
            )
            watch = self.fit([save], canary=0.001, saves=folder)
            assert watch.report is not None
            fixes = [one.finding.remedy.summary for result in watch.report.results for one in result.findings]
            return {**results(watch), "fixes": fixes}
        finally:
            made.make_programs = plain

    def stall(self) -> Any:
        """Step 30 takes longer than any step may on a busy machine, and so does a callback after the last step."""
        watch = kdoctor.Watch(every=10, interval_s=0.1, history=False, stall_s=6)
        slept: list[float] = []

        def sleep(*_: Any, **__: Any) -> None:
            assert watch._recorder is not None
            slept.append(1.25 * watch._recorder.stall_after_s)
            time.sleep(slept[-1])

        model_is_saved = self.keras.callbacks.LambdaCallback(on_epoch_end=sleep)
        callbacks = [self.at(30, sleep, end=True), model_is_saved, watch]
        self.model().fit(watch.data(self.data()), verbose=0, callbacks=callbacks)
        return {**results(watch), "slept": slept[0]}

    def starved(self) -> Any:
        def slow(*batch: Any) -> Any:
            tf.py_function(lambda: time.sleep(0.02), [], [])
            return batch

        return results(self.fit([], self.data().map(slow)))

    def stop(self) -> Any:
        """A NaN stops the training, after a checkpoint."""
        path = Path(tempfile.mkdtemp(), "last.keras")
        steps: list[int] = []
        count = self.keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: steps.append(batch))
        watch = self.fit([count], self.data(bad_step=17), on_error="stop", checkpoint=path)
        return {**results(watch), "saved": path.is_file(), "steps": len(steps)}

    def loop(self) -> Any:
        """A custom loop whose gradients become NaN at step 12."""
        model = self.model("sgd")
        optimizer, seen = model.optimizer, -1
        watch = kdoctor.Watch(model=model, strategy=self.strategy, every=5, on_error="stop", history=False)

        def one(batch: Any, number: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(batch[0], training=True) - batch[1]))
            gradients = tape.gradient(loss, model.trainable_variables)
            gradients[0] += tf.where(tf.equal(number, 12), tf.constant(math.nan), tf.constant(0.0))
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss, gradients

        step = tf.function(lambda batch, number: self.strategy.run(one, args=(batch, number)))
        os.chdir(tempfile.mkdtemp())
        stopped = False
        try:
            with watch:
                for number, batch in enumerate(watch.data(self.strategy.experimental_distribute_dataset(self.data()))):
                    loss, gradients = step(batch, tf.constant(number))
                    seen = number
                    watch.step(loss, gradients=gradients)
        except kdoctor.WatchError:
            stopped = True
        return {**results(watch), "stopped": stopped, "seen": seen, "saved": Path("kdoctor-watch.keras").is_file()}

    def broken(self) -> Any:
        """A receiver that raises, and a training that raises."""

        def fail(found: object) -> None:
            raise RuntimeError("receiver")

        watch = kdoctor.Watch(every=10, on_finding=fail, history=False)
        model, raised = self.model(), ""
        data = self.data(bad_step=3)

        def interrupt(_: Any) -> None:
            raise KeyboardInterrupt

        try:
            with watch:
                model.fit(data, verbose=0, callbacks=[self.at(20, interrupt), watch])
        except KeyboardInterrupt:
            raised = "KeyboardInterrupt"
        return {**results(watch), "raised": raised, "interrupted": watch.report.interrupted if watch.report else None}

    def at(self, step: int, act: Any, *, end: bool = False) -> Any:
        """A callback that acts at one step of the first epoch."""

        class Act(self.keras.callbacks.Callback):  # type: ignore[name-defined, misc]
            def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
                if batch == step and not end:
                    act(self.model)

            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
                if batch == step and end:
                    act(self.model)

        return Act()


def results(watch: kdoctor.Watch) -> dict[str, Any]:
    """Status of each check, and its findings as subject and numbers."""
    assert watch.report is not None
    return {
        "verdict": watch.report.verdict.conclusion.value,
        "statuses": {result.id: result.status.value for result in watch.report.results},
        "reasons": {result.id: result.reason for result in watch.report.results if result.status.value == "unknown"},
        "findings": {
            f"{result.id} {judged.finding.subject}": judged.finding.observed
            for result in watch.report.results
            for judged in result.findings
        },
    }


def main() -> None:
    """Run the named trainings."""
    logging.getLogger("kdoctor.watch").setLevel(logging.CRITICAL)
    devices = [tf.config.LogicalDeviceConfiguration() for _ in range(2)]
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
    plants = Plants(importlib.import_module(sys.argv[1]))
    found = {}
    for name in sys.argv[2:]:
        plants.found = []
        found[name] = {**getattr(plants, name)(), "live": plants.found}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
