"""Strategies that the job's own functions make.

Many jobs make a ``MirroredStrategy`` in the function that builds the model. TensorFlow refuses it in the scope of
another strategy, and it would not have the replicas of the examination. So the job gets a replacement.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

_THREAD = threading.local()


@dataclass
class OwnStrategy:
    """What the job's strategies are."""

    replicas: Any
    """The strategy of the examination."""
    entered: bool = False
    """Whether the job has entered its scope."""

    def current(self) -> Any:
        """The strategy of the examination, or the default one in a thread that trains on one device."""
        return tf.distribute.get_strategy() if getattr(_THREAD, "alone", False) else self.replicas


def train_alone() -> None:
    """To be called in a new thread that trains on one device: the job's strategy has one replica there."""
    _THREAD.alone = True


def replace_own(strategy: Any) -> OwnStrategy:
    """From now on, each ``MirroredStrategy`` that is made in this process has the attributes of this one."""
    own = OwnStrategy(strategy)

    class Replacement(tf.distribute.Strategy):  # type: ignore[misc] # no types
        def __init__(self) -> None:
            """Without devices, which the strategy of the examination has."""

        def __getattribute__(self, name: str) -> Any:
            own.entered = own.entered or name == "scope"
            return getattr(own.current(), name)

    kind, replacement = tf.distribute.MirroredStrategy, Replacement()
    # Python does not call __init__ for an object of another class.
    kind.__new__ = lambda cls, *_, **__: replacement if cls is kind else object.__new__(cls)
    return own
