"""The Python samples of the documentation run, with a small job over two replicas.

Samples of lint rules are tested with their rules.
"""

import json
import re
import sys
from pathlib import Path

import pytest
from docs.generator.pages import pages_by_location

from helpers.command import captured, environ
from helpers.tiers import tiered

NOT_INSTALLED = ("from parsl import",)
"""Starts of samples for programs that the tests do not install."""

PRELUDE = """
import json, sys, types
import keras, numpy as np, tensorflow as tf
import kdoctor
from kdoctor.model import Finding, Remedy, Rollback

devices = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
batch_size = 16
inputs = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
labels = (inputs.sum(1) > 0).astype("int32")
dataset = tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(batch_size, drop_remainder=True)
validation = batches = dataset
with strategy.scope():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
train_step = lambda batch: (tf.constant(0.5), [tf.ones(4)])
client = types.SimpleNamespace(run=lambda function, *arguments: {"node1": function(*arguments)})
given = dict(globals())
for page, samples in json.load(sys.stdin).items():
    names = {**given, "__file__": page, "__name__": page}
    for line, code in samples:
        exec(compile("\\n" * line + code, page, "exec"), names)
    print("ran", page, flush=True)
"""


def samples_of(text: str) -> list[tuple[int, str]]:
    """Each Python sample of a page, short and with the number of its first line."""
    found = re.finditer(r"^```python[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [
        (text[: sample.start()].count("\n") + 1, sample[1].replace("epochs=90", "epochs=1"))
        for sample in found
        if not sample[1].startswith(NOT_INSTALLED)
    ]


@pytest.mark.tensorflow
@pytest.mark.parametrize("half", tiered(range(2), range(2)))
def test_samples_run(half: int, tmp_path: Path) -> None:
    written = {page: text for page, text in pages_by_location().items() if "/docs/lint/" not in page}
    pages = {page: samples for page, text in sorted(written.items())[half::2] if (samples := samples_of(text))}
    done = captured([sys.executable, "-c", PRELUDE], input=json.dumps(pages), cwd=tmp_path, env=environ())
    assert done.returncode == 0, done.stderr
    assert [f"ran {page}" for page in pages] == re.findall("^ran .*", done.stdout, re.MULTILINE)
