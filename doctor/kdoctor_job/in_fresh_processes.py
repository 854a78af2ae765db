"""Saving, killing and restoring the job of a running program: ``kdoctor.preflight(..., restore=DIR)``.

The job is made again in fresh processes, which import its functions. They need the memory of the devices.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children
from kdoctor.smoke.session import SmokeSession, SmokeSettings
from kdoctor_job.own_model import OWN_MODEL, RESTORE, UserModel


def restored(
    parts: Mapping[str, Any], place: Path, *, steps: int, steps_per_epoch: int | None, run: SmokeRun
) -> SmokeCase:
    """The case that saves, kills and restores the job, or why it was not run.

    Args:
        parts: what the caller gave as ``model``, ``data`` and ``fit_arguments``; None for what was not given.
        place: the folder on the file system where the job saves.
        steps: steps of an epoch.
        steps_per_epoch: the argument of ``fit``.
        run: the examination in this process, with its devices.
    """
    named = {part: _name_of(value) or "MODULE:FUNCTION" for part, value in parts.items() if value is not None}
    command = " ".join(["kdoctor check", *(f"--{part.replace('_', '-')} {name}" for part, name in named.items())])
    lacking = [part for part, value in parts.items() if value is not None and _name_of(value) is None]
    why = _why_not(lacking, run)
    if why:
        message = f"{why}; run {command} --restore {place} in a shell"
        return SmokeCase(name=RESTORE, outcome="skipped", error_message=message)
    job = UserModel(
        model=named["model"],
        data=named["data"],
        fit_arguments=named.get("fit_arguments"),
        steps=steps,
        steps_per_epoch=steps_per_epoch,
        restore=str(place.absolute()),
    )
    scenario = replace(job.training().scenario, cases=(RESTORE,))
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    context = Context(python=sys.executable, chosen_by="kdoctor.preflight", environ=found, children=Children())
    settings = SmokeSettings(devices_kind=run.devices_kind, replicas=run.cases[0].replicas)
    done = SmokeSession([scenario], settings, context).run().runs[OWN_MODEL]
    case = done.case(RESTORE) if isinstance(done, SmokeRun) else None
    failure = done.failure if isinstance(done, SmokeRun) else done.unavailable
    return case or SmokeCase(name=RESTORE, outcome="skipped", error_message=failure)


def _why_not(lacking: Sequence[str], run: SmokeRun) -> str | None:
    if lacking:
        return f"{' and '.join(lacking)} must be functions of a module that fresh processes can import"
    if run.devices_kind == "gpu" and not _grows():
        return "this process holds the memory of the GPUs"
    return None


def _name_of(value: Any) -> str | None:
    """``package.module:function``, if that is what it is. To import a program would run it again."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "<")
    return None if module in (None, "__main__") or "<" in name else f"{module}:{name}"


def _grows() -> bool:
    """Whether TensorFlow takes only as much memory of the GPUs as it needs."""
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    return all(tf.config.experimental.get_memory_growth(gpu) for gpu in gpus)
