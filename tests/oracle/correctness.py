"""Runs the correctness test of tf_keras' wheel with a small model, and prints the problem of each case as JSON.

A program for the interpreter of an environment: ``python correctness.py keras`` or ``tf_keras``. The model is of that
package; trainings and comparison are those of ``tf_keras/src/distribute/keras_correctness_test_base.py``.
"""

import importlib
import json
import sys
import unittest
from typing import Any

import numpy as np
import tensorflow as tf
from tf_keras.src.distribute import keras_correctness_test_base as upstream

CASES = [(numpy, validation) for numpy in (True, False) for validation in (True, False)]


class Correctness(upstream.TestDistributionStrategyCorrectnessBase):  # type: ignore[misc]  # TensorFlow has no types here
    """A model of two layers."""

    package = "keras"
    case = (True, True)

    def get_data(self) -> tuple[Any, Any, Any]:
        """Examples like those of tf_keras' test of dense models, but fewer."""
        random = np.random.default_rng(1)
        x, y = random.random((1280, 3), np.float32), random.random((1280, 1), np.float32)
        return x, y, x[:64]

    def get_model(self, initial_weights: Any = None, distribution: Any = None, input_shapes: Any = None) -> Any:
        """The model, with these weights, in the scope of the strategy."""
        keras: Any = importlib.import_module(self.package)
        with upstream.MaybeDistributionScope(distribution):
            layers = [keras.layers.Input((3,)), keras.layers.Dense(5, activation="tanh"), keras.layers.Dense(1)]
            model = keras.Sequential(layers)
            if initial_weights:
                model.set_weights(initial_weights)
            model.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse", metrics=["mse"], jit_compile=False)
        return model

    def runTest(self) -> None:  # noqa: N802 - unittest's name
        """Compare two replicas with one device."""
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        self.run_correctness_test(strategy, use_numpy=self.case[0], use_validation_data=self.case[1])


def main(package: str) -> None:
    """Run each case."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    found = {}
    for numpy, validation in CASES:
        Correctness.package, Correctness.case = package, (numpy, validation)
        result = unittest.TestResult()
        Correctness().run(result)
        problems = [text.strip().splitlines() for _, text in (*result.failures, *result.errors)]
        name = ("NumPy" if numpy else "dataset") + (" and validation data" if validation else "")
        found[name] = problems[0][-1] if problems else ""
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
