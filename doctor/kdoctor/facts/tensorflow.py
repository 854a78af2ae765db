"""The TensorFlow build of the target, and the Keras that a job in it will use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup


@dataclass(frozen=True, kw_only=True)
class TensorFlowBuild(FactGroup):
    """What the installed TensorFlow was built for, read from its files without importing it."""

    group: ClassVar[str] = "tensorflow"

    installed: bool
    """Whether a ``tensorflow`` package can be found on the target's path."""
    distribution: str | None = None
    """The distribution that brought it: ``tensorflow``, ``tensorflow-cpu``, ``tf-nightly``, ..."""
    version: str | None = None
    """Its version."""
    location: str | None = None
    """The package's folder."""
    cuda_build: bool | None = None
    """Whether it was built with CUDA."""
    cuda_version: str | None = None
    """CUDA release that it was built against, for example ``12.5.1``."""
    cudnn_version: str | None = None
    """cuDNN release that it was built against (often the major alone)."""
    compute_capabilities: tuple[str, ...] = ()
    """``sm_XY`` (machine code) and ``compute_XY`` (PTX) entries, as the build names them; plain ``XY`` where
    the build only says that much (nightlies from 2.23)."""
    unreadable: str | None = None
    """Why the build's facts could not be read, if so."""


@dataclass(frozen=True, kw_only=True)
class KerasChoice(FactGroup):
    """Which Keras ``tf.keras`` will be, and on which backend."""

    group: ClassVar[str] = "keras"

    package: Literal["keras", "tf-keras", "tensorflow"]
    """The distribution that ``tf.keras`` resolves to (``tensorflow``: TensorFlow's own, before 2.6)."""
    version: str | None
    """That distribution's version; None where it is not installed."""
    legacy: bool
    """Whether ``TF_USE_LEGACY_KERAS`` asks for Keras 2."""
    backend: str
    """The backend that Keras 3 will use: ``tensorflow``, ``jax``, ``torch``, ..."""
    backend_from: str
    """Where the backend was read: ``KERAS_BACKEND``, ``keras.json``, or ``default``."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """``floatx``, ``epsilon`` and ``image_data_format`` as ``keras.json`` sets them, or as Keras has them without it;
    empty where that was not recorded."""
