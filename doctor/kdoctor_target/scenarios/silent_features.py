"""What Keras 3 gets wrong on several replicas without an error: clipped gradients and Dropout masks.

Measures: see ``kdoctor_target.training.clipping`` and ``kdoctor_target.training.random_numbers``.
"""

from __future__ import annotations

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.clipping import compare_clipped
from kdoctor_target.training.random_numbers import SEED, compare_masks


def clipnorm(case: Case) -> None:
    """Each variable's gradient is scaled to a norm."""
    compare_clipped(case, "clipnorm")


def dropout(case: Case) -> None:
    """The masks of Keras's Dropout on each replica."""
    compare_masks(case, lambda: tf.keras.layers.Dropout(0.5, seed=SEED))
