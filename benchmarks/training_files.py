"""Write realistic training scripts for the benchmark of the linter.

Each script consists of blocks: imports, options, pipelines, layers, models, a training function and reports. The same
seed gives the same files.
"""

import argparse
import random
from pathlib import Path

FILES = 200
_MIN_LINES, _MAX_LINES = 60, 2000

_HEAD = '''"""Trains {name} on several devices."""

import argparse
import json
import logging
import os

import keras
import numpy as np
import tensorflow as tf
from keras import layers

LOG = logging.getLogger(__name__)
PER_REPLICA_BATCH = {batch}
IMAGE_SIZE = ({size}, {size})


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder of TFRecord files")
    parser.add_argument("--epochs", type=int, default={epochs})
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--output", default="runs/{name}")
    return parser.parse_args()

'''
_PIPELINE = '''
def parse_{n}(record):
    """One example of the shards."""
    features = {{
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
        "weight": tf.io.FixedLenFeature([], tf.float32, default_value=1.0),
    }}
    parsed = tf.io.parse_single_example(record, features)
    image = tf.io.decode_jpeg(parsed["image"], channels=3)
    image = tf.image.resize(tf.cast(image, tf.float32) / 255.0, IMAGE_SIZE)
    if {flip}:
        image = tf.image.random_flip_left_right(image)
    return image, tf.one_hot(parsed["label"], {classes})


def dataset_{n}(folder, batch_size, training=True):
    files = tf.data.Dataset.list_files(os.path.join(folder, "{part}-*.tfrecord"), shuffle=training)
    records = files.interleave(tf.data.TFRecordDataset, cycle_length={cycle}, num_parallel_calls=tf.data.AUTOTUNE)
    if training:
        records = records.shuffle({buffer}, reshuffle_each_iteration=True)
    examples = records.map(parse_{n}, num_parallel_calls=tf.data.AUTOTUNE)
    return examples.batch(batch_size, drop_remainder=training).prefetch(tf.data.AUTOTUNE)

'''
_LAYER = '''
class Block{n}(layers.Layer):
    """A residual block of {units} filters."""

    def __init__(self, filters={units}, strides=1, **kwargs):
        super().__init__(**kwargs)
        self.filters = filters
        self.first = layers.Conv2D(filters, 3, strides=strides, padding="same", use_bias=False)
        self.first_norm = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)
        self.second = layers.Conv2D(filters, 3, padding="same", use_bias=False)
        self.second_norm = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)
        self.shortcut = layers.Conv2D(filters, 1, strides=strides) if strides != 1 else None

    def call(self, inputs, training=None):
        x = keras.activations.relu(self.first_norm(self.first(inputs), training=training))
        x = self.second_norm(self.second(x), training=training)
        shortcut = inputs if self.shortcut is None else self.shortcut(inputs)
        return keras.activations.relu(x + shortcut)

    def get_config(self):
        return {{**super().get_config(), "filters": self.filters}}

'''
_MODEL = """
def build_model_{n}(classes={classes}, dropout=0.{dropout}):
    inputs = keras.Input(shape=(*IMAGE_SIZE, 3), name="image")
    x = layers.Rescaling(scale=2.0, offset=-1.0)(inputs)
    for filters, repeats in (({units}, 2), ({units} * 2, 2), ({units} * 4, 3)):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.Activation("relu")(x)
        for _ in range(repeats):
            y = layers.SeparableConv2D(filters, 3, padding="same")(x)
            y = layers.BatchNormalization()(y)
            x = layers.add([x, layers.Activation("relu")(y)])
        x = layers.MaxPooling2D(2)(x)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dropout(dropout)(x)
    outputs = layers.Dense(classes, activation="softmax", dtype="float32", name="class")(x)
    return keras.Model(inputs, outputs, name="model_{n}")

"""
_REPORT = '''
def summarize_{n}(history, path):
    """Writes what the training gave, with the best epoch first."""
    rows = []
    for epoch, (loss, accuracy) in enumerate(zip(history["loss"], history["accuracy"])):
        rows.append({{"epoch": epoch, "loss": float(loss), "accuracy": float(accuracy)}})
    rows.sort(key=lambda row: (-row["accuracy"], row["loss"]))
    best = rows[0] if rows else None
    if best is not None and best["accuracy"] > 0.{dropout}:
        LOG.info("epoch %d is the best: %.4f", best["epoch"], best["accuracy"])
    elif best is not None:
        LOG.warning("no epoch is over the limit; the best is %.4f", best["accuracy"])
    confusion = np.zeros(({classes}, {classes}), dtype=np.int64)
    for row, column in [(i, (i * {cycle} + {n}) % {classes}) for i in range({classes})]:
        confusion[row, column] += 1
    report = {{"rows": rows, "best": best, "trace": int(np.trace(confusion)), "name": f"run-{n}-{{len(rows)}}"}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=2, sort_keys=True)
    return report

'''
_TAIL = """
def train(options):
    strategy = tf.distribute.MirroredStrategy()
    batch_size = PER_REPLICA_BATCH * strategy.num_replicas_in_sync
    LOG.info("training on %d replicas", strategy.num_replicas_in_sync)
    training = dataset_0(options.data, batch_size)
    validation = dataset_0(options.data, batch_size, training=False)
    with strategy.scope():
        model = build_model_0()
        optimizer = keras.optimizers.SGD(options.rate * strategy.num_replicas_in_sync, momentum=0.9, nesterov=True)
        model.compile(optimizer=optimizer, loss="categorical_crossentropy", metrics=["accuracy"])
    callbacks = [
        keras.callbacks.ModelCheckpoint(os.path.join(options.output, "epoch-{{epoch}}.keras")),
        keras.callbacks.TensorBoard(options.output),
        keras.callbacks.EarlyStopping(patience=3, restore_best_weights=True),
    ]
    history = model.fit(training, validation_data=validation, epochs=options.epochs, callbacks=callbacks)
    summarize_0(history.history, os.path.join(options.output, "summary.json"))
    model.save(os.path.join(options.output, "model.keras"))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    train(parse_arguments())
"""


def write_files(folder: Path, number: int = FILES, seed: int = 7) -> list[Path]:
    """Write scripts of evenly spread lengths, up to 2,000 lines."""
    chooser = random.Random(seed)  # noqa: S311 - not a secret
    paths = []
    for index in range(number):
        lines = _MIN_LINES + (_MAX_LINES - _MIN_LINES) * index // max(1, number - 1)
        path = folder / f"train_{index:03}.py"
        path.write_text(_script(chooser, f"job-{index}", lines), encoding="utf-8")
        paths.append(path)
    return paths


def _script(chooser: random.Random, name: str, lines: int) -> str:
    parts = [_HEAD.format(name=name, batch=chooser.choice((16, 32, 64)), size=64, epochs=chooser.randint(1, 90))]
    parts += [_block(chooser, block, 0) for block in (_PIPELINE, _MODEL, _REPORT)]
    tail = _TAIL.format()
    number = 1
    while True:
        block = _block(chooser, chooser.choice((_PIPELINE, _LAYER, _MODEL, _REPORT)), number)
        if sum(part.count("\n") for part in (*parts, block, tail)) > lines:
            return "".join([*parts, tail])
        parts.append(block)
        number += 1


def _block(chooser: random.Random, block: str, number: int) -> str:
    return block.format(
        n=number,
        flip=chooser.random() < 0.5,  # noqa: PLR2004 - a coin toss
        classes=chooser.randint(2, 1000),
        part=chooser.choice(("train", "shard", "part")),
        cycle=chooser.randint(2, 16),
        buffer=chooser.randint(1, 50) * 1000,
        units=chooser.choice((16, 32, 64)),
        dropout=chooser.randint(1, 9),
    )


def main() -> None:
    """Command line: write the scripts to a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", type=int, default=1, help="write folders of 200 scripts with this number of lines")
    options = parser.parse_args()
    seed = lines = 0
    while lines < options.lines:
        seed += 1
        folder = options.folder if options.lines == 1 else options.folder / f"part-{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        lines += sum(path.read_bytes().count(b"\n") for path in write_files(folder, seed=seed + 6))


if __name__ == "__main__":
    main()
