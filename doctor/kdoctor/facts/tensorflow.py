"""The TensorFlow build of the target, and the Keras that a job uses with it."""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup
from kdoctor.facts.bounds import Reason
from kdoctor.records import record


@record
class TensorFlowBuild(FactGroup):
    """Build properties of the installed TensorFlow, read from its files without importing it."""

    group: ClassVar[str] = "tensorflow"

    installed: bool
    """Whether a ``tensorflow`` package is on the target's path."""
    distribution: str | None = None
    """The distribution that contains it: ``tensorflow``, ``tensorflow-cpu``, ``tf-nightly``, ..."""
    version: str | None = None
    location: str | None = None
    cuda_build: bool | None = None
    """Whether it was built with CUDA."""
    cuda_version: str | None = None
    """CUDA release that it was built with, for example ``12.5.1``."""
    cudnn_version: str | None = None
    """cuDNN release that it was built with (often the major version only)."""
    compute_capabilities: tuple[str, ...] = ()
    """``sm_XY`` (machine code) and ``compute_XY`` (PTX) entries, as named by the build; plain ``XY`` in nightlies from
    2.23 on."""
    unreadable: Reason = None
    """Why the build could not be read, if so."""


@record
class KerasChoice(FactGroup):
    """The Keras that ``tf.keras`` resolves to, and its backend."""

    group: ClassVar[str] = "keras"

    package: Literal["keras", "tf-keras", "tensorflow"]
    """The distribution that ``tf.keras`` resolves to (``tensorflow``: TensorFlow's own, before 2.6)."""
    version: str | None
    """That distribution's version; None if it is not installed."""
    legacy: bool
    """Whether ``TF_USE_LEGACY_KERAS`` selects Keras 2."""
    backend: str
    """The backend that Keras 3 will use: ``tensorflow``, ``jax``, ``torch``, ..."""
    backend_from: str
    """The setting that selects the backend: ``KERAS_BACKEND``, ``keras.json``, or ``default``."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """``floatx``, ``epsilon`` and ``image_data_format``, from ``keras.json`` or Keras's defaults; empty if not
    recorded."""
