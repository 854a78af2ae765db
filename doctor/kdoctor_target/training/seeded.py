"""Layers with the same initial weights every time they are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

TOKENS = 6
"""Length of the longest sequences."""
VOCABULARY = 20


def start(seed: int) -> Any:
    """An initializer."""
    return tf.keras.initializers.GlorotUniform(seed=seed)


def dense(units: int, seed: int, **options: Any) -> Any:
    """A Dense layer."""
    return tf.keras.layers.Dense(units, kernel_initializer=start(seed), **options)


def embedding(width: int, *, masked: bool) -> Any:
    """An Embedding layer for sequences of :func:`tokens`."""
    return tf.keras.layers.Embedding(VOCABULARY, width, mask_zero=masked, embeddings_initializer=start(1))


def tokens(examples: int) -> Any:
    """Sequences of 1 to TOKENS tokens, filled up with 0."""
    numbers = np.random.RandomState(6)
    values = numbers.randint(1, VOCABULARY, size=(examples, TOKENS))
    values[np.arange(TOKENS) >= numbers.randint(1, TOKENS + 1, size=(examples, 1))] = 0
    return values.astype("int32")
