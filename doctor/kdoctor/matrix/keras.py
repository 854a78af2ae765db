"""Rows of the version matrix about what distributed Keras does."""

from __future__ import annotations

from typing import Literal

from kdoctor.matrix.values import Sources, SpecifierText, Text, Texts
from kdoctor.yamldoc.validation import StrictPart


class KerasBehaviour(StrictPart):
    """What some releases of Keras do with several replicas."""

    versions: SpecifierText
    weights: Literal["right", "wrong"]
    """Whether even batches give the weights of a single device."""
    reported: Literal["right", "wrong"]
    """Whether the reported loss and metrics are correct."""
    ragged: Text
    """What an uneven final batch does."""
    empty_replica: Text
    """What a final batch does that leaves a replica without examples, with BatchNormalization."""
    source: Sources


class KerasFeature(StrictPart):
    """What some releases of Keras do with a feature of a job over the replicas of MirroredStrategy."""

    feature: Literal["clipping", "steps-per-execution", "random-layers"]
    package: Literal["keras", "tf_keras"]
    versions: SpecifierText
    """From the oldest to the newest measured release."""
    result: Literal["right", "wrong", "raises"]
    observed: Text
    """What was measured, with its numbers."""
    releases: Texts
    """The measured releases."""
    source: Sources
