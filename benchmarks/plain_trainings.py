"""The yardstick for the checklist cpu-smoke: its trainings in sequence in one plain script.

It has no child processes and no deadlines. It looks at the weights only for NaN and the largest difference.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
import tensorflow as tf

REPLICAS, PER_REPLICA, EPOCHS, FEATURES = 2, 8, 3, 4
GLOBAL_BATCH = REPLICAS * PER_REPLICA


def make_model(*, normalised: bool) -> tf.keras.Model:
    """The reference model."""
    layers = tf.keras.layers
    middle = [layers.BatchNormalization()] if normalised else []
    first = layers.Dense(8, activation="tanh", kernel_initializer=tf.keras.initializers.GlorotUniform(seed=1))
    last = layers.Dense(1, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=2))
    return tf.keras.Sequential([layers.InputLayer((FEATURES,)), first, *middle, last])


def compile_model(model: tf.keras.Model) -> tf.keras.Model:
    """Compile with the reference optimizer and metric."""
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mean_squared_error", metrics=["mae"], jit_compile=False)
    return model


def fit(model: tf.keras.Model, examples: int, *, drop_remainder: bool = False) -> list[np.ndarray]:
    """Train on seeded data and return the weights."""
    numbers = np.random.RandomState(20)
    inputs = numbers.uniform(-1.0, 1.0, size=(examples, FEATURES)).astype("float32")
    targets = inputs.sum(axis=1, keepdims=True)
    dataset = tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(GLOBAL_BATCH, drop_remainder=drop_remainder)
    model.fit(dataset, epochs=EPOCHS, verbose=0, shuffle=False)
    weights: list[np.ndarray] = model.get_weights()
    return weights


def compare(examples: int, *, normalised: bool, drop_remainder: bool = False) -> None:
    """Train on one device and on the replicas."""
    reference = fit(compile_model(make_model(normalised=normalised)), examples, drop_remainder=drop_remainder)
    with strategy.scope():
        model = compile_model(make_model(normalised=normalised))
    weights = fit(model, examples, drop_remainder=drop_remainder)
    print(max(float(np.max(np.abs(one - other))) for one, other in zip(reference, weights, strict=True)))


cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * REPLICAS)
strategy = tf.distribute.MirroredStrategy([device.name for device in tf.config.list_logical_devices("CPU")])

compare(6 * GLOBAL_BATCH, normalised=False)
compare(5 * GLOBAL_BATCH + 2 * REPLICAS - 1, normalised=True)
compare(5 * GLOBAL_BATCH + 1, normalised=True, drop_remainder=True)

with strategy.scope():
    starved = compile_model(make_model(normalised=True))
print("finite:", all(np.isfinite(weight).all() for weight in fit(starved, 5 * GLOBAL_BATCH + 1)))

outside = compile_model(make_model(normalised=False))
fit(outside, 4 * GLOBAL_BATCH)

built_outside = make_model(normalised=False)
with strategy.scope():
    compile_model(built_outside)
try:
    fit(built_outside, 4 * GLOBAL_BATCH)
except (RuntimeError, AssertionError, ValueError) as error:
    print("refused:", type(error).__name__)
