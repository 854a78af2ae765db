"""Calls the hooks of Keras's callbacks for two epochs, so that Keras itself says what would end the job."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any, Collection, Optional

from kdoctor_job.target.callbacks import paths
from kdoctor_job.target.parts import describe, keras_of

_LEFT_OUT = {"LambdaCallback", "RemoteMonitor", "TensorBoard"}
"""They run code of the job, call a server, or start a profiler."""
_CALLS_THE_JOB = {"LearningRateScheduler"}
_MOST_BYTES = 500_000_000
"""Weights of a model that is saved here."""


def why_ended(callback: Any, model: Any, numbers: Collection[str], *, own: bool) -> Optional[str]:
    """What a callback raises in two epochs; None if nothing, or if it is not called.

    Args:
        callback: of the job. A copy is called, whose paths are in a temporary folder.
        model: a copy that has trained and is not needed any more, since callbacks change it.
        numbers: the names that ``fit`` reports.
        own: whether functions of the job may be called, since nothing follows.
    """
    keras, name = keras_of(model), type(callback).__name__
    mine = getattr(keras.callbacks, name, None) is type(callback) and hasattr(keras, "ops")
    places = [str(value) for _, value in paths(callback)]
    is_large = sum(leaf.nbytes for leaf in model.get_weights()) > _MOST_BYTES if places and mine else False
    if not mine or name in _LEFT_OUT or (name in _CALLS_THE_JOB and not own) or is_large or "://" in "".join(places):
        return None
    with tempfile.TemporaryDirectory(prefix="kdoctor-job-") as folder:
        try:
            _call_hooks(_elsewhere(callback, Path(folder)), model, dict.fromkeys(numbers, 0.5))
        except Exception as error:
            return f"{name} raises in the first epochs: {describe(error).replace(folder, '')}"
    return None


def _elsewhere(callback: Any, folder: Path) -> Any:
    """A copy that writes in the folder. A folder that is missing for the job is missing there, too."""
    made = copy.copy(callback)
    for name, value in paths(callback):
        real = Path(value).absolute()
        place = folder.joinpath(*real.parts[1:])
        if real.parent.is_dir():
            place.parent.mkdir(parents=True, exist_ok=True)
        setattr(made, name, str(place) if isinstance(value, str) else place)
    return made


def _call_hooks(callback: Any, model: Any, logs: Any) -> None:
    callback.set_params({"epochs": 2, "steps": 1, "verbose": 0})
    callback.set_model(model)
    callback.on_train_begin()
    for epoch in range(2):
        callback.on_epoch_begin(epoch)
        callback.on_train_batch_begin(0)
        callback.on_train_batch_end(0, {name: number for name, number in logs.items() if not name.startswith("val_")})
        callback.on_epoch_end(epoch, dict(logs))
    callback.on_train_end()
