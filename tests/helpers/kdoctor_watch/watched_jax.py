"""Trainings on JAX under ``kdoctor.Watch``: a bit of a replica changes before step 22 of a fit; a custom loop."""

import logging
import os
import sys
from typing import Any

os.environ |= {"KERAS_BACKEND": "jax", "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}

import jax
import keras
import numpy as np

import kdoctor


class Plant(keras.callbacks.Callback):  # type: ignore[misc, unused-ignore]
    """Changes the lowest bit of one value on the second device."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch != 22:
            return
        model = self.model
        variable = model.layers[0].kernel
        shards = list(variable.value.addressable_shards)
        copies = [np.asarray(shard.data).copy() for shard in shards]
        copies[1].view(np.uint32)[0, 0] ^= 1
        placed = [jax.device_put(copy, shard.device) for copy, shard in zip(copies, shards, strict=True)]
        changed = jax.make_array_from_single_device_arrays(variable.value.shape, variable.value.sharding, placed)
        variable._value = changed
        place = next(place for place, one in enumerate(model.trainable_variables) if one is variable)
        model._jax_state["trainable_variables"][place] = changed


def loop(model: Any) -> list[str]:
    """Subjects and findings of a custom loop with a NaN in its loss, and one in a gradient."""
    with kdoctor.Watch(model=model, history=False) as watch:
        for step in range(12):
            gradients = [jax.numpy.ones(one.shape) for one in model.trainable_variables]
            gradients[1] += jax.numpy.nan if step == 9 else 0.0
            watch.step(jax.numpy.float32(jax.numpy.nan if step == 5 else 1.0), gradients=gradients)
    assert watch.report is not None
    found = next(result for result in watch.report.results if result.id == "watch.finite").findings
    return [f"{judged.finding.subject}: {judged.finding.observed}" for judged in found]


def main() -> None:
    """Print the findings of ``watch.replicas-equal``, and whether TensorFlow was imported."""
    logging.getLogger("kdoctor.watch").setLevel(logging.CRITICAL)
    keras.distribution.set_distribution(keras.distribution.DataParallel())
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(33), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    values = np.random.default_rng(1).random((480, 4)).astype("float32")
    watch = kdoctor.Watch(every=5, interval_s=0.5, history=False, canary=0.001)
    targets = values.sum(axis=1, keepdims=True)
    model.fit(values, targets, batch_size=16, shuffle=False, verbose=0, callbacks=[Plant(), watch])
    assert watch.report is not None
    for result in watch.report.results:
        for judged in result.findings:
            sys.stdout.write(f"{result.id} {judged.finding.subject}: {judged.finding.observed}\n")
    canary = next(result for result in watch.report.results if result.id == "watch.same-bits")
    sys.stdout.write(f"{canary.status.value} {', '.join(one.observed for one in canary.evidence)}\n")
    sys.stdout.write(f"{', '.join(loop(model))}\n")
    sys.stdout.write(f"tensorflow: {'tensorflow' in sys.modules}\n")


if __name__ == "__main__":
    main()
