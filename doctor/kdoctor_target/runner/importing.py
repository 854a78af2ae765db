"""What is set before the imports that all cases need, and those imports."""

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
from kdoctor_target.runner.errors import describe_error

Settings = Dict[str, Any]
Facts = Dict[str, Any]


def prepare_environment(settings: Settings) -> None:
    """Set what the framework reads when it is imported, leaving the user's own choices alone."""
    on_cpu = settings["devices_kind"] == "cpu"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    # Without it TensorFlow takes all memory of every GPU, and the next case finds none.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    if settings["framework"] == "jax":
        _prepare_jax(on_cpu, settings["replicas"])
    if on_cpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    else:
        os.environ.setdefault("NCCL_DEBUG", "WARN")  # silent while all is well; a hang without it says nothing
        os.environ.pop("NCCL_DEBUG_FILE", None)  # what NCCL says is kept with the case


def _prepare_jax(on_cpu: bool, replicas: Optional[int]) -> None:  # noqa: FBT001
    os.environ["KERAS_BACKEND"] = "jax"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # as for TensorFlow
    if on_cpu:
        os.environ["JAX_PLATFORMS"] = "cpu"
        # Twice as many, for a mesh whose every replica is cut in two.
        devices = "--xla_force_host_platform_device_count={}".format(2 * (replicas or 1))
        os.environ["XLA_FLAGS"] = "{} {}".format(os.environ.get("XLA_FLAGS", ""), devices).strip()


def preload(settings: Settings, folder: Path, channel: Channel) -> bool:
    """Import what all cases need and say its versions; whether that went well.

    A hang ends this process at the deadline, with its stacks in ``runner-<framework>.stacks``.
    """
    stacks = (folder / "runner-{}.stacks".format(settings["framework"])).open("w")
    faulthandler.enable(stacks)
    faulthandler.dump_traceback_later(settings["import_deadline_s"], exit=True, file=stacks)
    try:
        facts = import_all(settings["preload"])
    except BaseException as error:
        traceback.print_exc()
        channel.send({"event": "failed", **describe_error(error)})
        return False
    finally:
        faulthandler.cancel_dump_traceback_later()
    channel.send({"event": "imported", **facts})
    return True


def import_all(names: List[str]) -> Facts:
    """Import the modules; the versions of the frameworks that are among them.

    JAX is an optional extra: where it or its Keras is not installed, nothing is imported, and its cases say so.
    Whatever else importing raises goes through.
    """
    facts: Facts = {}
    if "jax" in names and without("jax"):
        return facts
    for name in names:
        started = time.perf_counter()
        module = importlib.import_module(name)
        if name == "tensorflow":
            facts["import_s"] = time.perf_counter() - started
            facts["tensorflow"] = str(module.__version__)
            # TensorFlow loads Keras when it is first asked for: do it once, here.
            keras = sys.modules[module.keras.Model.__module__.partition(".")[0]]
            facts["keras"] = _named(keras)
            _require_tensorflow(keras)
        elif name == "jax":
            facts["import_s"] = time.perf_counter() - started
            facts["jax"] = str(module.__version__)
        elif name == "keras":
            facts["import_s"] = facts.get("import_s", 0.0) + time.perf_counter() - started
            facts["keras"] = _named(module)
    return facts


def without(framework: str) -> Optional[str]:
    """Why no scenario of the framework is for this environment, which lacks an optional extra; None if it is."""
    if framework != "jax":
        return None
    if importlib.util.find_spec("jax") is None:
        return "JAX is not installed here (an optional extra: jax, or jax[cuda12] for GPUs)"
    if importlib.util.find_spec("keras") is None:
        return "JAX is installed here, but Keras 3 (keras) is not"
    return None


class WrongBackendError(Exception):
    """Keras computes with something else than the framework of the trainings."""


def _require_tensorflow(keras: Any) -> None:
    """Raise where the strategies of tf.distribute would meet a Keras that computes with something else.

    Its models take no notice of a strategy's scope, and train on one device or fail later with no word of the cause.
    """
    ask = getattr(getattr(keras, "backend", None), "backend", None)  # the Keras inside of TensorFlow has none
    backend = ask() if ask else "tensorflow"
    if backend != "tensorflow":
        raise WrongBackendError(
            "{} computes with {} (KERAS_BACKEND or keras.json), which takes no notice of the strategies of "
            "tf.distribute".format(_named(keras), backend)
        )


def _named(keras: Any) -> str:
    return "{} {}".format(keras.__name__, keras.__version__)
