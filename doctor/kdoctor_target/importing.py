"""What is set before the imports that all cases need, and those imports."""

from __future__ import annotations

import faulthandler
import importlib
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Dict, List

from kdoctor_target.channel import Channel
from kdoctor_target.errors import describe_error

Settings = Dict[str, Any]
Facts = Dict[str, Any]


def prepare_environment(devices_kind: str) -> None:
    """Set what TensorFlow reads when it is imported, leaving the user's own choices alone."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    # Without it TensorFlow takes all memory of every GPU, and the next case finds none.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    if devices_kind == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    else:
        os.environ.setdefault("NCCL_DEBUG", "WARN")  # silent while all is well; a hang without it says nothing


def preload(settings: Settings, folder: Path, channel: Channel) -> bool:
    """Import what all cases need and say its versions; whether that went well.

    A hang ends this process at the deadline, with its stacks in ``runner.stacks``.
    """
    stacks = (folder / "runner.stacks").open("w")
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
    """Import the modules; the versions of TensorFlow and Keras, if they are among them.

    What importing raises goes through.
    """
    facts: Facts = {}
    for name in names:
        started = time.perf_counter()
        module = importlib.import_module(name)
        if name == "tensorflow":
            facts["import_s"] = time.perf_counter() - started
            facts["tensorflow"] = str(module.__version__)
            # TensorFlow loads Keras when it is first asked for: do it once, here.
            keras = sys.modules[module.keras.Model.__module__.partition(".")[0]]
            facts["keras"] = "{} {}".format(keras.__name__, keras.__version__)
    return facts
