"""Runs trials of ``kdoctor.preflight`` in this process, with TensorFlow.

It reads a JSON list a line from standard input, the kind of trial and the names, and answers with a line of JSON.
"""

import contextlib
import faulthandler
import io
import json
import logging
import os
import random
import sys
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf

import kdoctor
from helpers.kdoctor_job import job_classes, job_fits, job_hazards, job_models
from kdoctor_job.target import comparing, evaluating
from kdoctor_job.target.copies import Copier, Setup
from kdoctor_job.target.epoch import Epoch
from kdoctor_job.target.layers import random_layers
from kdoctor_job.target.masks import draw
from kdoctor_job.target.scales import hides_scale
from kdoctor_job.target.shares import of_whole_batch
from kdoctor_job.target.trials import SpentError, Trials

STEPS = 3
DEADLINE_S = 1500


def main() -> None:
    """Run trials until standard input ends."""
    strategy = job_models.devices()
    trials: dict[str, Any] = {
        "matrix": _matrix,
        "untouched": _untouched,
        "forms": _forms,
        "guard": _guard,
        "classes": _classes,
        "hazards": _hazards,
        "scales": _scales,
        "draws": _draws,
        "shares": _shares,
        "evaluations": _evaluations,
        "again": _again,
        "fits": _fits,
        "strategies": _strategies,
    }
    here = Path.cwd()
    for line in sys.stdin:
        kind, *names = json.loads(line)
        faulthandler.dump_traceback_later(DEADLINE_S, exit=True)
        found = trials[kind](strategy, *names)
        faulthandler.cancel_dump_traceback_later()
        os.chdir(here)
        sys.stdout.write(f"\n{json.dumps(found)}\n")
        sys.stdout.flush()


def _matrix(strategy: Any, *names: str) -> dict[str, Any]:
    return {name: _found(_trial(strategy, *name.split(":"))) for name in names}


def _trial(strategy: Any, model: str, planted: str) -> Any:
    keras.utils.set_random_seed(3)  # how far a wrong number is off depends on the initial weights
    return kdoctor.preflight(*job_models.pitfall(strategy, model, planted), strategy, steps=STEPS)


def _found(done: Any) -> dict[str, Any]:
    return {
        "findings": {name: [one.observed for one in found] for name, found in done.findings.items()},
        "fixes": [one.remedy.summary for found in done.findings.values() for one in found],
        "unknown": {item.id: item.reason for item in done.report.results if item.status.value == "unknown"},
        "verdict": done.report.verdict.conclusion.value,
    }


def _state(model: Any) -> list[Any]:
    return [variable.numpy().tobytes().hex() for variable in (*model.variables, *model.optimizer.variables)]


def _random_state() -> list[Any]:
    return [
        repr(random.getstate()),
        repr(np.random.get_state()),  # noqa: NPY002 - data pipelines use it
        tf.random.uniform([3]).numpy().tobytes().hex(),
        keras.random.uniform([3]).numpy().tobytes().hex(),
    ]


def _untouched(strategy: Any) -> dict[str, Any]:
    """The same training with and without a preflight in between."""
    return {kind: _history(strategy, look=kind == "with") for kind in ("without", "with")}


def _history(strategy: Any, *, look: bool) -> dict[str, Any]:
    keras.utils.set_random_seed(3)
    keras.backend.clear_session()
    found: dict[str, Any] = {}
    for name in ("cnn", "own-step"):
        model, data = job_models.pitfall(strategy, name, "none")
        if name == "cnn":
            model.fit(data, epochs=1, verbose=0)
        if look:
            done = kdoctor.preflight(model, data, strategy, steps=STEPS)
            known = {"job.input-bound", "job.final-batch", "job.random-layers", "job.state"}
            found_nothing = not done.findings.keys() - known
            assert done.ok and found_nothing, done  # noqa: PT018 - in a child
        with strategy.scope():
            found[f"{name}: the next layer's name"] = keras.layers.Dense(1).name
        found[f"{name}: weights and slots"] = _state(model)
        found[f"{name}: random numbers"] = _random_state()
        found[f"{name}: order of the data"] = [part[1].numpy().tolist() for _ in range(2) for part in data]
        history = model.fit(data, epochs=2, verbose=0)
        found[f"{name}: the training after it"] = [history.history["loss"], _state(model)]
    return found


class Items(keras.utils.PyDataset):  # type: ignore[misc]  # Keras has no types
    """Batches by index."""

    def __init__(self, batches: list[Any], *, endless: bool = False) -> None:
        super().__init__()
        self.batches = batches
        self.endless = endless

    @property
    def num_batches(self) -> int | None:
        return None if self.endless else len(self.batches)

    def __getitem__(self, index: int) -> Any:
        return self.batches[index % len(self.batches)]


def _forms(strategy: Any, *names: str) -> dict[str, Any]:
    """A correct model with kinds of data, valid and invalid, and forms of model."""
    inputs, targets = job_models.examples("dense")
    batches = [(inputs[start : start + 16], targets[start : start + 16]) for start in range(0, 64, 16)]
    generator, short = iter(batches), (inputs[:8], targets[:8])
    build = tf.data.Dataset
    signature = (tf.TensorSpec((None, 8)), tf.TensorSpec((None,), tf.int64))
    static = (tf.TensorSpec((16, 8)), tf.TensorSpec((16,), tf.int64))
    words = build.from_generator(lambda: iter([[1.0], [1.0, 2.0]]), tf.float32)
    data: dict[str, Any] = {
        "tf.data": job_models.dataset("dense"),
        "function": lambda: job_models.dataset("dense"),
        "PyDataset": Items(batches),
        "PyDataset without end": Items(batches, endless=True),
        "arrays": (inputs, targets),
        "function of a generator": lambda: iter(batches),
        "generator": generator,
        "generator in a dataset": build.from_generator(lambda: generator, output_signature=signature),
        "dataset of a generator": build.from_generator(lambda: iter(batches), output_signature=static).prefetch(1),
        "distributed": lambda: strategy.experimental_distribute_dataset(job_models.dataset("dense")),
        "distributed from a function": strategy.distribute_datasets_from_function(
            lambda _: job_models.dataset("dense")
        ),
        "empty": job_models.dataset("dense").take(0),
        "empty arrays": (inputs[:0], targets[:0]),
        "unbatched": build.from_tensor_slices((inputs, targets)),
        "ragged": words.batch(2),
        "ragged tensors": build.from_tensor_slices(tf.ragged.constant([[1.0], [1.0, 2.0]])).batch(2),
        "of two lengths": (inputs, targets[:40]),
        "nothing": None,
        "raises": lambda: 1 / 0,
        "wants arguments": lambda path: path,
        "generator of eight batches of two sizes": lambda: (short if n % 2 else batches[0] for n in range(8)),
        "generator of eight batches": lambda: (batches[number % 4] for number in range(8)),
    }
    with strategy.scope():
        model = job_models.compiled("dense", job_models.dense())
    found: dict[str, Any] = {
        name: _found(kdoctor.preflight(model, one, strategy, steps=8 if "eight" in name else 2))
        for name, one in data.items()
        if name in names
    }
    found["generator left alone"] = next(generator) is batches[0]
    models: dict[str, Any] = {
        "function of a model": lambda: job_models.compiled("dense", job_models.dense()),
        "no model": "resnet",
        "function of no model": lambda: None,
        "not compiled": job_models.dense,
        "without call": job_classes.without_call,
        "strings": job_classes.of_strings,
        "parts of two sizes": lambda: job_classes.without_call(job_classes.WithCall),
        "two inputs in a list": lambda: job_models.compiled("dense", job_classes.of_two_inputs()),
    }
    ready, texts = data["tf.data"], build.from_tensor_slices((["a b", "c"] * 16, [[1.0]] * 32)).batch(16).prefetch(1)
    parts = build.zip(
        tuple(build.from_tensor_slices(inputs).batch(size, drop_remainder=True) for size in (16, 8))
    ).prefetch(1)
    for name in names:
        if name in models:
            others = {
                "strings": texts,
                "parts of two sizes": parts,
                "two inputs in a list": ([inputs, inputs], targets),
            }
            given = others.get(name, ready)
            found[name] = _found(kdoctor.preflight(models[name], given, strategy, steps=2))
    if "inside the scope" in names:
        with strategy.scope():
            found["inside the scope"] = _found(kdoctor.preflight(model, ready, steps=2))
    if "no strategy" in names:
        found["no strategy"] = _found(kdoctor.preflight(models["function of a model"], ready, steps=2))
    return found


def _classes(strategy: Any, *names: str) -> dict[str, Any]:
    """Models of the user's own classes, with constructor arguments, and losses that raise."""
    data = job_models.dataset("dense")
    found = {}
    for name in names:
        with strategy.scope():
            model = job_models.compiled("dense", job_classes.MAKERS[name]())
        before = [weight.tobytes() for weight in model.get_weights()]
        found[name] = _found(kdoctor.preflight(model, data, strategy, steps=2))
        found[name]["untouched"] = before == [weight.tobytes() for weight in model.get_weights()]
    return found


def _hazards(strategy: Any, folder: str, *names: str) -> dict[str, Any]:
    """Jobs of ``job_hazards``, in an empty folder; with the names of what a preflight changed."""
    os.chdir(folder)
    with strategy.scope():
        counter = tf.Variable(0.0)
    makers = job_hazards.hazards(strategy, counter)
    found = {}
    for name in names:
        keras.utils.set_random_seed(3)  # the same job, whichever others are tried
        with strategy.scope():
            model = makers[name]()
        rate = model.optimizer.learning_rate

        def state(model: Any = model, rate: Any = rate) -> dict[str, Any]:
            return {
                "weights and slots": _state(model),
                "counter": float(counter.numpy()),
                "log": list(job_hazards.LOG),
                "environment": dict(os.environ),
                "files": os.listdir(folder),  # noqa: PTH208 - names only
                "learning rate": float(rate.numpy()) if hasattr(rate, "numpy") else rate,
            }

        before = state()
        given = makers[name] if name.startswith("function: ") else model
        data = job_models.dataset("dense", count=64)
        data = data.map(job_hazards.weighted).prefetch(1) if name == "weighted data" else data
        found[name] = _found(kdoctor.preflight(given, data, strategy, steps=4))
        after = state()
        found[name]["changed"] = [part for part in before if before[part] != after[part]]
    return found


def _fits(strategy: Any, *names: str) -> dict[str, Any]:
    """Jobs with other arguments of ``fit``."""
    keras.utils.set_random_seed(3)
    jobs = job_fits.fits()
    return {name: _found(job_fits.examine(strategy, jobs[name])) for name in names}


def _scales(_: Any) -> dict[str, Any]:
    """Why each optimizer of Keras hides the size of the gradient: by its steps alone, and with its variables."""
    known = vars(keras.optimizers).items()
    left_out = ("Optimizer", "LossScaleOptimizer", "MultiOptimizer", "OptimizerMap")
    kinds = {name: kind for name, kind in known if isinstance(kind, type) and name not in left_out}
    hides = partial(hides_scale, keras, clips=False)
    others = {
        "clipped": hides_scale(keras, keras.optimizers.SGD(), clips=True, in_slots=True),
        "accumulating": hides(keras.optimizers.SGD(gradient_accumulation_steps=2), in_slots=False),
        "not to be copied": hides(job_hazards.Unclonable(), in_slots=True),
        "wrapped": hides(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD()), in_slots=False),
    }
    hidden = {name: [hides(kind(0.01), in_slots=seen) for seen in (False, True)] for name, kind in kinds.items()}
    return {"hidden": hidden, "others": others}


class Refusing(keras.layers.Dropout):  # type: ignore[misc]  # Keras has no types
    """Cannot be called alone."""

    def call(self, inputs: Any, training: bool = False) -> Any:  # noqa: FBT001, FBT002 - the signature of Keras
        if training:
            raise ValueError("not alone")
        return inputs


class Drawing(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Calls random layers in several ways."""

    def __init__(self) -> None:
        super().__init__()
        self.same, self.zeros, self.never = (keras.layers.Dropout(0.5) for _ in range(3))
        self.other = job_hazards.ReplicaDropout(0.5)
        self.refusing = Refusing(0.5)

    def call(self, inputs: Any, training: bool = False) -> Any:  # noqa: FBT001, FBT002 - the signature of Keras
        called = [layer(inputs, training=training) for layer in (self.same, self.other, self.refusing)]
        return sum([*called, self.zeros(0 * inputs, training=training)])


def _draws(strategy: Any) -> dict[str, Any]:
    """What is measured of each layer; also of a model that cannot be called."""
    with strategy.scope():
        model, closed = Drawing(), Drawing()
    model(np.ones((4, 8), "float32"))
    names = {id(layer): name for name, layer in vars(model).items() if isinstance(layer, keras.layers.Layer)}
    ordered = [names[id(layer)] for layer in random_layers(model)]
    found = draw(model, strategy, np.ones((4, 8), "float32"), ordered)
    object.__setattr__(closed, "call", None)
    return {"found": found, "closed": draw(closed, strategy, np.ones((4, 8), "float32"), ordered)}


class OfBatch(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Computes its outputs from a whole batch, by the given function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.dense, self.function = keras.layers.Dense(3), function

    def call(self, inputs: Any) -> Any:
        return self.function(self.dense(inputs))


def _shares(_: Any) -> dict[str, Any]:
    """What jobs compute from a whole batch. Some outputs have no row for each example."""
    outputs = {
        "each": lambda hidden: hidden,
        "similarities": lambda hidden: tf.matmul(hidden, hidden, transpose_b=True),
        "sum": tf.reduce_sum,
        "mean of some": lambda hidden: (
            tf.reduce_sum(tf.nn.relu(hidden)) / tf.math.count_nonzero(hidden > 0, dtype="float32")
        ),
    }
    numbers = np.random.default_rng(1).normal(size=(8, 4)).astype("float32")
    found = {}
    for name, function in outputs.items():
        model = OfBatch(function)
        model.compile("sgd", loss=lambda _, predicted: tf.reduce_mean(predicted))
        found[name] = of_whole_batch(model, (numbers, numbers[:, :1]), 2)
    # The square of the mean of a batch is 1, and the mean of those of its shares 1.0025.
    alike = np.repeat([[1.05], [0.95]], 4, axis=0).astype("float32")
    model = keras.Sequential([keras.Input((1,)), keras.layers.Activation("linear")])
    for name, loss in {"alike": tf.identity, "square of alike": tf.square}.items():
        model.compile("sgd", loss=lambda _, predicted, loss=loss: loss(tf.reduce_mean(predicted)))
        found[name] = of_whole_batch(model, (alike, alike), 2)
    return found


def _evaluations(_: Any) -> dict[str, Any]:
    """What is kept of a first evaluation that differs and has a metric of 0, and of a second one that is equal.

    And two evaluations of a model that draws numbers at inference, too; and the device of those that are one device's.
    """
    differs = {"reference": {"f1": 0.0, "loss": 1.0}, "logs": {"f1": 0.0, "loss": 2.0}}
    equal = {"reference": {"f1": 0.5, "loss": 1.0}, "logs": {"f1": 0.5, "loss": 1.0}}
    with mock.patch.object(evaluating, "_evaluations", side_effect=[differs, equal]):
        kept = evaluating.compare_evaluations(mock.Mock(), 3)
    model = keras.Sequential([job_hazards.DropsExamples(), keras.layers.Dense(1)])
    model.compile(loss="mse")
    batch: Any = np.ones((16, 8), "float32"), np.ones((16, 1), "float32")
    strategy = tf.distribute.MirroredStrategy(["CPU:1", "CPU:0"])
    one = Trials(mock.Mock(), strategy, [batch], None)
    one._mirrored = one._alone = mock.Mock(made=model)  # as if they were trained
    drawn = evaluating.compare_evaluations(one, 15)
    device = one.apart(lambda: tf.Variable(0.0).device)
    return {"kept": kept["logs"], "drawn": [drawn["logs"], drawn["reference"]], "device": device[-5:]}


def _again(strategy: Any) -> dict[str, Any]:
    """Trainings of copies that were trained before, compared with those of new copies; and slots, equal and not."""
    with strategy.scope():
        model = job_models.compiled("cnn", job_models.cnn())
    data = job_models.dataset("cnn").take(STEPS)
    batches, setup = list(data.as_numpy_iterator()), Setup(still=True)
    used, new = (Trials(Copier(model, STEPS), strategy, batches, None) for _ in range(2))
    used.on_its_data(Epoch(data, {}, lambda: None), setup)
    one, copies = used.on_one_device(setup), [used.mirrored, used.alone]
    once, more = used.on_replicas(setup), used.on_one_device(setup, order=1)
    pairs = [(once, new.on_replicas(setup)), (more, new.on_one_device(setup, order=1))]
    twice = once._replace(slots=[slot._replace(ended=2 * slot.ended) for slot in once.slots])
    late, new.budget_s, spent = comparing.Comparison(new, [], (), {}, mock.Mock()), 0.0, []
    for step in (partial(new.on_replicas, setup), late.compare_sgd):
        try:
            step()
        except SpentError as error:
            spent.append(str(error))
    return {
        "spent": spent,
        "kept": [copies[0] is used.mirrored, copies[1] is used.alone],
        "apart": [max(map(np.max, map(np.abs, map(np.subtract, a.weights, b.weights)))).item() for a, b in pairs],
        "slots": [comparing._equal_slots(one, other) for other in (once, twice, once._replace(slots=[]))],
    }


def _strategies(strategy: Any) -> dict[str, Any]:
    """A job on another strategy of the process, with another type of numbers, after one on this strategy."""
    _trial(strategy, "dense", "none")
    keras.config.set_dtype_policy("float64")
    other = tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(strategy.num_replicas_in_sync)])
    found = _found(_trial(other, "dense", "none"))
    keras.config.set_dtype_policy("float32")
    return found


class Notes(logging.Handler):
    """Counts what TensorFlow logs."""

    number = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.number += 1


def _guard(strategy: Any) -> dict[str, Any]:
    """The error of ``guard``, and the representations of a preflight."""
    outside = job_models.compiled("dense", job_models.dense())
    data = job_models.dataset("dense")
    try:
        kdoctor.guard(outside, data, strategy, steps=0, allow_unknown=True, epochs=3)
    except kdoctor.PreflightError as error:
        raised, report = str(error), error.preflight
    with strategy.scope():
        good = job_models.compiled("dense", job_models.dense())
    printed = io.StringIO()
    notes = Notes()
    tf.get_logger().addHandler(notes)
    with contextlib.redirect_stdout(printed):
        shown = kdoctor.guard(good, data, steps=2)
    try:
        kdoctor.guard(good, strategy, data)
    except TypeError as error:
        swapped = str(error)
    misspelt = kdoctor.preflight(good, data, strategy, fit_arguments={"verbose": 0}, epoch=3)
    shown_as = {"html": report._repr_html_(), "text": repr(report)}
    return {
        "raised": raised,
        "good": shown.ok,
        "printed": printed.getvalue(),
        "notes": notes.number,
        "swapped": swapped,
        "misspelt": str(misspelt.findings["job.model-and-data"][0].observed),
        **shown_as,
    }


if __name__ == "__main__":
    main()
