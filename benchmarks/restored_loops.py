"""The training loops of ``benchmarks.restore_trials``."""
# ruff: noqa: D103 - the names say it

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

NUMBERS = np.random.default_rng(1).normal(size=(1024, 4)).astype("float32")


def _loop(folder: str, left_out: str = "", *, strategy: Any = None, restores: bool = True) -> Iterator[float]:
    """Save every third step with a ``tf.train.Checkpoint``, and go on from the newest."""
    strategy = strategy or tf.distribute.MirroredStrategy()
    with strategy.scope():
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
        optimizer = keras.optimizers.Adam(0.05)
        optimizer.build(model.trainable_variables)
        step = tf.Variable(0, dtype=tf.int64)
    parts = {"model": model, "optimizer": optimizer, "step": step}
    checkpoint = tf.train.Checkpoint(**{name: part for name, part in parts.items() if name != left_out})
    number = getattr(strategy.cluster_resolver, "task_id", None) or 0
    if restores and (newest := tf.train.latest_checkpoint(folder)):
        checkpoint.restore(newest)
    # Only the first worker's saves are kept; the others must save, too.
    manager = tf.train.CheckpointManager(checkpoint, f"{folder}/worker{number}" if number else folder, 3)
    data = tf.data.Dataset.from_tensor_slices((NUMBERS, NUMBERS[:, :1])).batch(16).repeat()
    data = data if left_out == "position" else data.skip(int(step.numpy()))

    def on_replica(inputs: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((model(inputs, training=True) - targets) ** 2) / 16
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    @tf.function  # type: ignore[untyped-decorator, unused-ignore]
    def train(batch: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(on_replica, args=batch), axis=None)

    for batch in strategy.experimental_distribute_dataset(data):
        loss = float(train(batch))
        step.assign_add(1)
        if int(step.numpy()) % 3 == 0:
            manager.save()
        yield loss


def whole(folder: str) -> Iterator[float]:
    return _loop(folder)


def without_optimizer(folder: str) -> Iterator[float]:
    return _loop(folder, "optimizer")


def without_position(folder: str) -> Iterator[float]:
    return _loop(folder, "position")


def begins_again(folder: str) -> Iterator[float]:
    return _loop(folder, restores=False)


def two_workers(folder: str) -> Iterator[float]:
    return _loop(folder, strategy=tf.distribute.MultiWorkerMirroredStrategy())


def two_workers_without_position(folder: str) -> Iterator[float]:
    return _loop(folder, "position", strategy=tf.distribute.MultiWorkerMirroredStrategy())


def one_file(folder: str, *, renames: bool = False) -> Iterator[float]:
    """Any state in one file, without a framework."""
    path, steps, state = Path(folder, "state"), 0, np.zeros(3_000_000)
    if path.exists():
        steps, state = pickle.loads(path.read_bytes())  # noqa: S301 - its own file
    for step in range(steps, 1000):
        state = state + np.random.default_rng(step).normal(size=state.shape)
        part = path.with_suffix(".part") if renames else path
        part.write_bytes(pickle.dumps((step + 1, state)))
        part.replace(path)
        yield float(state.sum())


def one_file_renamed(folder: str) -> Iterator[float]:
    return one_file(folder, renames=True)


def on_jax(folder: str, *, keeps_key: bool = True) -> Iterator[float]:
    """Parameters, momentum and the key of the random numbers in one file, without Keras."""
    import jax  # noqa: PLC0415 - only these loops need it

    path, key, step = Path(folder, "state"), jax.random.key(0), 0
    state = {"weights": jax.numpy.zeros((4, 1)), "momentum": jax.numpy.zeros((4, 1))}
    if path.exists():
        step, state, data = pickle.loads(path.read_bytes())  # noqa: S301 - its own file
        key = jax.random.wrap_key_data(data) if keeps_key else key

    def loss(weights: Any, batch: Any, noise: Any) -> Any:
        return jax.numpy.mean(((batch + noise) @ weights - batch[:, :1]) ** 2)

    train = jax.jit(jax.value_and_grad(loss))
    while step < len(NUMBERS) // 16:
        key, own = jax.random.split(key)
        noise = 0.1 * jax.random.normal(own, (16, 4))
        value, gradients = train(state["weights"], NUMBERS[step * 16 : step * 16 + 16], noise)
        momentum = 0.9 * state["momentum"] + gradients
        state, step = {"weights": state["weights"] - 0.05 * momentum, "momentum": momentum}, step + 1
        part = path.with_suffix(".part")
        part.write_bytes(pickle.dumps((step, jax.device_get(state), jax.device_get(jax.random.key_data(key)))))
        part.replace(path)
        yield float(value)


def on_jax_with_the_first_key(folder: str) -> Iterator[float]:
    return on_jax(folder, keeps_key=False)


def saves_nothing(folder: str) -> Iterator[float]:  # noqa: ARG001 - the parameter is asked for
    yield from range(100)


def unseeded(folder: str) -> Iterator[float]:
    for _ in range(100):
        Path(folder, "state").touch()
        yield np.random.default_rng().normal()


def raises(folder: str) -> Iterator[float]:
    yield 1.0
    raise FileNotFoundError(f"{folder}/shard")


def yields_nothing(folder: str) -> int:  # noqa: ARG001
    return 3


def two_files(folder: str) -> Iterator[float]:
    """A file that is renamed when it is complete, and another one that is not."""
    place = Path(folder, "more.state")
    for step, value in enumerate(one_file(folder, renames=True)):
        if place.exists() and not step:
            pickle.loads(place.read_bytes())  # noqa: S301 - its own file
        content = pickle.dumps(np.zeros(3_000_000))
        with place.open("wb", buffering=0) as file:
            file.write(content[:1_000_000])
            time.sleep(0.05)  # as on a slow disk, so that a kill some milliseconds later still cuts it off
            file.write(content[1_000_000:])
        yield value
