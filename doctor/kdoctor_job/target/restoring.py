"""Whether the job comes back: it is trained, saved, killed and restored in fresh processes, and goes on.

Every process makes the same model with the same seed and trains two epochs on the same batches:

- ``whole`` is not killed. Its variables after the first epoch, after the next step and at the end are the reference.
- ``killed`` saves after the first epoch, and kills itself during the next save.
- ``load`` loads the first save on all replicas and trains the second epoch; ``alone`` does so on one device.
- ``half`` loads what the killed save left behind.
- ``backup`` goes on with ``BackupAndRestore``.

Copies of variables on other replicas than the first are not saved by Keras and not compared here. Random numbers begin
again after loading. So that the rest of the state is compared, the functions of ``tf.random`` draw the same numbers in
all processes, and generators of Keras get the saved state before the second epoch.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import tensorflow as tf

from kdoctor_job.target.data import Data
from kdoctor_job.target.parts import PartError, as_model, call, describe, find, keras_of
from kdoctor_job.target.random_numbers import random_numbers_fixed
from kdoctor_job.target.strategies import replace_own
from kdoctor_job.target.trials import dataset
from kdoctor_target.runner.case import Case
from kdoctor_target.training.isolated import in_a_process
from kdoctor_target.training.replicas import make_strategy, read_copies
from kdoctor_target.training.workers import Facts, Task

_TOLERANCE = 1e-3
"""Largest difference of a variable after the second epoch, relative to its change in it."""
_SEED = 7
_SHOWN = 6
_FAILED = "failed"
_LEAST_FREE = 2**17
"""Bytes of a save besides its variables."""
_SAVED, _NEXT, _BACKUP = "model.keras", "next.keras", "backup"

State = Dict[str, Any]


def restore(case: Case) -> None:
    """Examine the job named by the settings, in a fresh folder of the one that ``restore`` names."""
    place = case.settings["restore"]
    facts: Facts = {"folder": place}

    def say(**more: Any) -> None:
        facts.update(more)
        case.note(job=facts)

    say()
    try:
        folder = Path(tempfile.mkdtemp(prefix="kdoctor-restore-", dir=place))
    except OSError as error:
        say(save_problem=f"{error.strerror}: {place}")
        return
    try:
        _Restoring(case, folder, say).run()
    finally:
        shutil.rmtree(str(folder), ignore_errors=True)


class _Restoring:
    def __init__(self, case: Case, folder: Path, say: Callable[..., None]) -> None:
        self._case = case
        self._folder = folder
        self._say = say

    def run(self) -> None:
        whole = self._process("whole", _whole)
        if whole["outcome"] != "trained":
            self._say(not_run=_end_of(whole))
            return
        free, size = shutil.disk_usage(str(self._folder)).free, whole["job"]["state_bytes"]
        self._say(free_bytes=free)
        killed = self._process("killed", _killed)
        if killed.get("signal") != "SIGKILL":
            full = (
                f"{free >> 10} KiB free, and {size >> 10} KiB of variables: " if free < _LEAST_FREE + 2 * size else ""
            )
            self._say(save_problem=f"{full}{_end_of(killed)}")
            return
        self._say(**killed.get("job") or {})
        for name, work in (("load", _loaded), ("alone", _alone), ("half", _half), ("backup", _backup)):
            done = self._process(name, work)
            self._say(**(done["job"] if done["outcome"] == "trained" else {f"{name}_problem": _end_of(done)}))

    def _process(self, name: str, work: Callable[[Case, Path, Path], None]) -> Facts:
        self._case.phase(f"restore: {name}")
        files = self._case.file("restore")

        def run(task_case: Case) -> None:
            task_case.settings = self._case.settings
            try:
                work(task_case, self._folder, files)
            except Exception as error:
                task_case.note(job={_FAILED: _said(error)})
                raise

        return in_a_process(self._case, Task(name, 0), run, self._case.deadline_s / 3)


def _said(error: Exception) -> str:
    """The error in one line. Keras puts what it could not load before the reason."""
    _, quotes, reason = str(error).rpartition("Exception encountered: ")
    return f"{type(error).__name__}: {reason.partition(' Full object config')[0]}" if quotes else describe(error)


def _end_of(facts: Facts) -> str:
    if facts["outcome"] == "raised":
        return str(facts["job"][_FAILED])
    return f"the process {facts['outcome']} ({facts.get('signal') or facts.get('exit_code') or 'no signal'})"


def _begin(case: Case, *, alone: bool = False) -> Tuple[Any, Any]:
    """The strategy, or the default one, and the function that makes the model; everything is seeded."""
    sys.path.insert(0, str(Path.cwd()))
    strategy = tf.distribute.get_strategy() if alone else make_strategy(case)
    replace_own(strategy)
    builder = find("model", case.settings["model"])
    tf.keras.utils.set_random_seed(_SEED)
    return strategy, builder


def _resume(case: Case, *, alone: bool = False) -> Any:
    """The strategy of a process that loads. The model is made first, as a script does: it may set a global policy."""
    strategy, builder = _begin(case, alone=alone)
    _build(strategy, builder)
    return strategy


def _build(strategy: Any, builder: Callable[[], Any]) -> Any:
    with strategy.scope():
        return as_model(call("model", builder), "the model")


def _fit(model: Any, files: Path, callbacks: List[Any], **more: Any) -> None:
    with files.with_suffix(".batches").open("rb") as file:
        batches = pickle.load(file)  # noqa: S301 - written by the first process, in the folder of this run
    with random_numbers_fixed():
        model.fit(dataset(batches), epochs=2, verbose=0, shuffle=False, callbacks=callbacks, **more)


def _whole(case: Case, _: Path, files: Path) -> None:
    strategy, builder = _begin(case)
    with strategy.scope():
        data = Data(call("data", find("data", case.settings["data"])), own=True, batch_size=None)
    found = data.examine(case.settings["steps"], case.settings.get("steps_per_epoch"))
    if found.get("problem") or found.get("unread"):
        raise PartError("data", str(found.get("problem") or found.get("unread")))
    with files.with_suffix(".batches").open("wb") as file:
        pickle.dump(data.full[: case.settings["steps"]], file)
    model = _build(strategy, builder)
    keep = _keeper(strategy, model)
    _fit(model, files, [keep])
    for name, state in keep.states.items():
        with files.with_suffix(f".{name}").open("wb") as file:
            pickle.dump(state, file)
    case.note(job={"state_bytes": sum(int(one.nbytes) for one in keep.states["epoch"].values())})


def _killed(case: Case, folder: Path, files: Path) -> None:
    strategy, builder = _begin(case)
    model = _build(strategy, builder)
    keras: Any = keras_of(model)

    class Save(keras.callbacks.Callback):  # type: ignore[name-defined, misc, unused-ignore]
        epoch = 0

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            self.epoch = epoch

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            if epoch == 0:
                began = time.monotonic()
                _save(model, folder / _SAVED)
                size = (folder / _SAVED).stat().st_size
                case.note(job={"save_s": time.monotonic() - began, "save_bytes": size})

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
            if self.epoch == 1:
                known = set(folder.rglob("*"))
                threading.Thread(target=_kill_in_a_save, args=(folder, known), daemon=True).start()
                _save(model, folder / _NEXT)
                os.kill(os.getpid(), signal.SIGKILL)

    _fit(model, files, [keras.callbacks.BackupAndRestore(str(folder / _BACKUP)), Save()])


def _save(model: Any, path: Path) -> None:
    model.save(str(path))
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _kill_in_a_save(folder: Path, known: Any) -> None:
    """Kill this process as soon as a new file has its first bytes."""
    while True:
        for path in folder.rglob("*"):
            if path not in known and path.is_file() and path.stat().st_size:
                os.kill(os.getpid(), signal.SIGKILL)


def _loaded(case: Case, folder: Path, files: Path) -> None:
    strategy = _resume(case)
    began = time.monotonic()
    model = _load(strategy, folder / _SAVED)
    seconds = time.monotonic() - began
    wrong = _unequal(_read(files, "epoch"), _state_of(strategy, model))
    keep = _keeper(strategy, model, files)
    _fit(model, files, [keep], initial_epoch=1)
    seeds, lost = ([name for name in wrong if _is_seed(name) is kind] for kind in (True, False))
    found = {"restore_s": seconds, "variables": len(keep.states["end"]), "seeds": seeds[:_SHOWN], "lost": lost[:_SHOWN]}
    case.note(job={**found, "apart": _apart(keep.states["end"], files)[:_SHOWN]})


def _alone(case: Case, folder: Path, files: Path) -> None:
    strategy = _resume(case, alone=True)
    model = _load(strategy, folder / _SAVED)
    lost = [name for name in _unequal(_read(files, "epoch"), _state_of(strategy, model)) if not _is_seed(name)]
    _fit(model, files, [], initial_epoch=1)
    case.note(job={"lost_alone": lost[:_SHOWN]})


def _half(case: Case, folder: Path, files: Path) -> None:
    if not (folder / _NEXT).exists():
        case.note(job={"half": "absent"})
        return
    strategy = _resume(case)
    try:
        model = _load(strategy, folder / _NEXT)
    except Exception as error:
        case.note(job={"half": "noticed", "half_said": _said(error)})
        return
    wrong = [name for name in _unequal(_read(files, "step"), _state_of(strategy, model)) if not _is_seed(name)]
    case.note(job={"half": "silent" if wrong else "complete"})


def _backup(case: Case, folder: Path, files: Path) -> None:
    strategy, builder = _begin(case)
    model = _build(strategy, builder)
    keep = _keeper(strategy, model, files)
    _fit(model, files, [keras_of(model).callbacks.BackupAndRestore(str(folder / _BACKUP)), keep])
    case.note(job={"backup_epochs": keep.epochs, "backup_apart": _apart(keep.states["end"], files)[:_SHOWN]})


def _load(strategy: Any, path: Path) -> Any:
    with strategy.scope():
        return tf.keras.models.load_model(str(path))


def _read(files: Path, name: str) -> State:
    with files.with_suffix(f".{name}").open("rb") as file:
        found: State = pickle.load(file)  # noqa: S301 - as above
    return found


def _matched(wanted: State, found: State) -> Dict[str, Any]:
    """What was found for each name of ``wanted``, or None.

    Loading gives layers other paths. So variables are matched by the last word of their names, their shape and order.
    """
    keyed = dict(zip(_keys(found), found.values()))
    return {name: keyed.get(key) for name, key in zip(wanted, _keys(wanted))}


def _keys(state: State) -> List[Tuple[Any, ...]]:
    known: Counter[Tuple[Any, ...]] = Counter()
    keys: List[Tuple[Any, ...]] = []
    for name, array in state.items():
        words = re.split("[/_]", name.partition(" (")[0])
        kind = words[-1], array.shape
        keys.append((*kind, known[kind]))
        known[kind] += 1
    return keys


def _unequal(saved: State, loaded: State) -> List[str]:
    """Variables that are missing after loading, or have other bits."""
    found = _matched(saved, loaded)
    return [
        name
        for name, one in saved.items()
        if found[name] is None or not np.array_equal(one, found[name], equal_nan=_is_real(one))
    ]


def _state_of(strategy: Any, model: Any) -> State:
    """Every variable of the model and its optimizer, but those of metrics, as the first replica has it."""
    found = {name: read_copies(strategy, one)[0].numpy() for name, one in _variables(model).items()}
    # To NumPy, bfloat16 and float8 are not numbers.
    return {name: one if one.dtype.kind in "biufc" else one.astype("float32") for name, one in found.items()}


def _variables(model: Any) -> Dict[str, Any]:
    of_optimizer = getattr(getattr(model, "optimizer", None), "variables", ())
    left_out = {id(one) for metric in model.metrics for one in metric.variables}
    found: Dict[str, Any] = {}
    for one in (*model.variables, *(of_optimizer() if callable(of_optimizer) else of_optimizer)):
        if id(one) not in left_out:
            left_out.add(id(one))
            name = str(getattr(one, "path", one.name))
            found[f"{name} ({len(found)})" if name in found else name] = one
    return found


def _is_seed(name: str) -> bool:
    """Whether a variable is the state of a generator, by the name that ``keras.random.SeedGenerator`` gives it."""
    return name.partition(" (")[0].endswith("seed_generator_state")


def _keeper(strategy: Any, model: Any, saved: Optional[Path] = None) -> Any:
    """A callback that keeps the state after the first epoch, after the step that follows, and after the second.

    If ``saved`` names the files of the run that was not killed, the generators of Keras 3 get their states of it before
    the second epoch; Keras 2 has none that are variables.
    """
    keras: Any = keras_of(model)

    class Keep(keras.callbacks.Callback):  # type: ignore[name-defined, misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.states: Dict[str, State] = {}
            self.epochs: List[int] = []

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            self.epochs.append(epoch)
            if epoch and saved:
                states = [one for name, one in _read(saved, "epoch").items() if _is_seed(name)]
                generators = [one for name, one in _variables(model).items() if _is_seed(name)]
                for variable, value in zip(generators, states):
                    variable.assign(value)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
            if self.epochs[-1] == 1:
                self.states.setdefault("step", _state_of(strategy, model))

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            self.states["end" if epoch else "epoch"] = _state_of(strategy, model)

    return Keep()


def _apart(state: State, files: Path) -> List[str]:
    """Variables that are not where the run that was not killed has them after the second epoch."""
    before, wanted = _read(files, "epoch"), _read(files, "end")
    finite = [name for name, one in wanted.items() if _is_real(one) and np.isfinite(one).all()]
    changes = {name: _size(wanted[name] - before[name]) for name in finite}
    least = max(changes.values(), default=0.0) / 10
    found = _matched(wanted, state)

    def is_equal(name: str, one: Any) -> bool:
        other = found[name]
        if name not in changes or other is None:
            return other is not None and np.array_equal(one, other, equal_nan=_is_real(one))
        return _size(one - other) <= _TOLERANCE * max(changes[name], least)

    return [name for name, one in wanted.items() if not is_equal(name, one)]


def _is_real(array: Any) -> bool:
    return bool(array.dtype.kind == "f")


def _size(array: Any) -> float:
    return float(np.sqrt(np.mean(np.square(array.astype("float64"))))) if array.size else 0.0
