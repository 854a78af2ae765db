"""Prepares the environment for the framework, and imports it."""

from __future__ import annotations

import faulthandler
import importlib
import importlib.util
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Dict, List, Optional

from kdoctor_target.runner.channel import Channel
from kdoctor_target.runner.faults import find_faults
from kdoctor_target.runner.outcome import describe_error

Settings = Dict[str, Any]
Facts = Dict[str, Any]

_OPTIONAL = {
    "jax": ("JAX", "jax, or for GPUs jax[cuda13] (driver 580 or newer) or jax[cuda12]"),
    "torch": ("torch", "torch"),
}
"""Frameworks whose cases are skipped where they are not installed: what they are called, and what to install."""


def prepare_environment(settings: Settings) -> None:
    """Set the variables that the framework reads when it is imported, without overriding the user's choices."""
    on_cpu = settings["devices_kind"] == "cpu"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    # TensorFlow would otherwise take all memory of every GPU, and leave none to the next case.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    if settings["framework"] == "jax":
        _prepare_jax(on_cpu, settings["replicas"])
    if settings["framework"] == "torch":
        os.environ["KERAS_BACKEND"] = "torch"
    if on_cpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    else:
        os.environ.setdefault("NCCL_DEBUG", "WARN")  # silent unless something fails; a hang is silent without it
        os.environ.pop("NCCL_DEBUG_FILE", None)  # NCCL's output is kept with the case


def _prepare_jax(on_cpu: bool, replicas: Optional[int]) -> None:  # noqa: FBT001
    os.environ["KERAS_BACKEND"] = "jax"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # as for TensorFlow
    if on_cpu:
        os.environ["JAX_PLATFORMS"] = "cpu"
        # Twice as many, for a mesh in which two devices make one replica.
        devices = f"--xla_force_host_platform_device_count={2 * (replicas or 1)}"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {devices}".strip()


def preload(settings: Settings, folder: Path, channel: Channel) -> bool:
    """Import what all cases need and send the versions; returns whether that succeeded.

    A hang ends this process at the deadline and leaves its stacks in ``runner-<framework>.stacks``.
    """
    stacks = (folder / f"runner-{settings['framework']}.stacks").open("w")
    faulthandler.enable(stacks)
    faulthandler.dump_traceback_later(settings["import_deadline_s"], exit=True, file=stacks)
    try:
        facts = import_all(settings["preload"])
    except BaseException as error:
        traceback.print_exc()
        channel.send({"event": "failed", "faults": find_faults(error), **describe_error(error)})
        return False
    finally:
        faulthandler.cancel_dump_traceback_later()
    channel.send({"event": "imported", **facts})
    return True


def import_all(names: List[str]) -> Facts:
    """Import the modules; returns the versions of the frameworks among them.

    JAX and torch are optional extras: if one or its Keras is not installed, nothing is imported and its cases are
    skipped.
    """
    facts: Facts = {}
    if any(name in names and reason_missing(name) for name in _OPTIONAL):
        return facts
    for name in names:
        started = time.perf_counter()
        module = importlib.import_module(name)
        if name == "tensorflow" or name in _OPTIONAL:
            facts[name] = str(module.__version__)
        elif name == "keras":
            facts["keras"] = _named(module)
        else:
            continue
        facts["import_s"] = facts.get("import_s", 0.0) + time.perf_counter() - started
        if name == "tensorflow":
            # TensorFlow loads Keras lazily: load it once, here.
            keras = sys.modules[module.keras.Model.__module__.partition(".")[0]]
            facts["keras"] = _named(keras)
            _require_tensorflow(keras)
    return facts


def reason_missing(framework: str) -> Optional[str]:
    """Why the framework's scenarios cannot run here: an optional extra is not installed. None if it is."""
    if framework not in _OPTIONAL:
        return None
    title, install = _OPTIONAL[framework]
    if importlib.util.find_spec(framework) is None:
        return f"{title} is not installed (optional: install {install})"
    if importlib.util.find_spec("keras") is None:
        return f"{title} is installed, but Keras 3 (keras) is not"
    return None


class WrongBackendError(Exception):
    """Keras uses a different backend than the trainings."""


def _require_tensorflow(keras: Any) -> None:
    """Raise if Keras does not use the TensorFlow backend.

    Its models ignore the scope of a tf.distribute strategy: they train on one device, or fail later with an unrelated
    error.
    """
    ask = getattr(getattr(keras, "backend", None), "backend", None)  # the Keras inside TensorFlow has none
    backend = ask() if ask else "tensorflow"
    if backend != "tensorflow":
        raise WrongBackendError(
            f"{_named(keras)} uses the {backend} backend (KERAS_BACKEND or keras.json), "
            "which ignores tf.distribute strategies"
        )


def _named(keras: Any) -> str:
    return f"{keras.__name__} {keras.__version__}"
