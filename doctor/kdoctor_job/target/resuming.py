"""How the job saves and goes on, in one process for each way.

The job's own callbacks save and restore it, if the function of its arguments of ``fit`` takes the folder where they
save, so that kdoctor can give it another one. Otherwise ModelCheckpoint and BackupAndRestore of Keras do. Every process
makes the model, the arguments and the data as the job does, and trains for two epochs of a few steps:

- ``whole`` is not killed: the reference. ``noise`` is not killed, either, but the last bit of its inputs differs.
- ``killed`` kills itself in the second epoch, after a save. ``torn`` is killed there when a save has begun.
- ``load``, ``alone``, ``backup`` and ``half`` go on in a copy of what these left, ``alone`` on one device.

A callback at the end of the list writes down the state whenever files in the folder have changed: it must be the one
with which the job goes on. If no callback restores, the newest file that can be loaded is, as a script would do.

The functions of ``tf.random`` draw the same numbers in all processes, so that the rest is compared where random numbers
begin again.
"""

from __future__ import annotations

import math
import shutil
import time
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any, List, Optional, Tuple

import h5py

from kdoctor_job.target.callbacks import other_place
from kdoctor_job.target.data import Data
from kdoctor_job.target.fitting import PART, FitArguments
from kdoctor_job.target.parts import PartError, as_model, call, describe, find, keras_of, takes
from kdoctor_job.target.random_numbers import random_numbers_fixed
from kdoctor_job.target.rows import record_rows, shake
from kdoctor_job.target.states import apart, is_seed, optimizers_of, seeds_of, state_of, steps_of, unequal
from kdoctor_job.target.watching import (
    BETWEEN_SAVES,
    IN_A_SAVE,
    Facts,
    NothingRestoredError,
    Snapshot,
    Watch,
    around,
    numbers_of,
    read,
    write,
)
from kdoctor_target.runner.case import Case

FOLDER = "folder"
"""The parameter of the job's functions that gets the folder where it saves."""
SHOWN = 6
_EPOCHS = 2
_FROM_FILES = ("load", "alone", "half")
"""Processes that go on with the saved model, if the job has no callbacks."""


class SaveError(Exception):
    """One of the job's callbacks raised."""


class Own:
    """The job in one process."""

    def __init__(self, case: Case, strategy: Any, folder: Path, files: Path, name: str) -> None:
        """Make the job's folder.

        Args:
            case: the process's case.
            strategy: the strategy, or the default one.
            folder: where all processes save.
            files: the folder of files for other processes.
            name: of the process.
        """
        self._settings = case.settings
        self._strategy = strategy
        self.name = name
        self.folder = folder
        self.files = files
        self._case = case
        named = case.settings.get("fit_arguments")
        self._arguments = find(PART, named) if named else None
        self.has_own = self._arguments is not None and takes(self._arguments, FOLDER)
        self.is_built = self.has_others = self.is_cut = False
        """Whether the model has variables before ``fit``, whether the job has callbacks, which may not be run, and
        whether its epochs are whole passes over more data than is trained here."""
        self.watch = self._new_watch()

    def train(
        self, *, shaken: bool = False, kill: Optional[str] = None, after: Optional[str] = None, written: str = ""
    ) -> Snapshot:
        """Train, or go on; returns the end.

        Args:
            shaken: whether the last bit of the inputs differs.
            kill: another kind of end.
            after: the kind of end of the process after which this one goes on.
            written: the kind of file in whose save it ends.

        Raises:
            SaveError: a callback raised, but not while it restored the job.
        """
        watch, self._after = self.watch, after
        watch.written = written
        watch.kill, watch.resumes, watch.moment = kill, bool(after), int(self._settings.get("moment") or 0)
        try:
            return self._fit(self._made("model"), shaken=shaken)
        except NothingRestoredError:
            began = time.monotonic()
            model = self._load()
            self.watch = self._new_watch()
            self.watch.restore_s = time.monotonic() - began
            return self._fit(model, is_loaded=True)
        except Exception as error:
            if watch.inside and (watch.started or not after):
                raise SaveError(describe(error)) from error
            raise

    def note(self, facts: Facts) -> None:
        """Report facts by the names of ``JobRestore``'s fields."""
        self._case.note(job=facts)

    def _new_watch(self) -> Watch:
        for folder in (self.folder / self.name, self.files / self.name):
            folder.mkdir(exist_ok=True)
        return Watch(self.folder / self.name, self.files / self.name, self.note, is_own=self.has_own)

    def _made(self, part: str) -> Any:
        with self._strategy.scope():
            made = call(part, find(part, self._settings[part]), folder=str(self.folder / self.name))
            return as_model(made, "the model") if part == "model" else made

    def _fit(self, model: Any, *, shaken: bool = False, is_loaded: bool = False) -> Snapshot:
        with self._strategy.scope():
            fit = FitArguments(self._arguments, folder=str(self.folder / self.name))
        epoch, steps, size = self._epoch(fit)
        with self._strategy.scope():
            if shaken:
                shake(model)
            rows = record_rows(self._strategy, model, _EPOCHS * steps, size)
        before, callbacks = self._callbacks(fit, model)
        self.watch.steps_per_epoch = steps
        self.watch.brief = lambda: (max(map(steps_of, optimizers_of(model)), default=0), numbers_of(callbacks))
        self.watch.look = lambda: Snapshot(*self.watch.brief(), state_of(model), rows())
        self.watch.go_on = lambda steps: self._give_seeds(model, steps)
        first, timed, last = around(keras_of(model), self.watch)
        more = {"initial_epoch": self.watch.brief()[0] // steps} if is_loaded else {}
        with random_numbers_fixed():
            model.fit(
                **{**epoch.named, **fit.of_job(), **more},
                epochs=_EPOCHS,
                verbose=0,
                callbacks=[first, *before, timed, *callbacks, last],
            )
        return self.watch.look()

    def saved(self, steps: int) -> Tuple[Optional[Snapshot], bool]:
        """What the killed process saved after these steps, or else last, and whether it saved then."""
        saves = {int(path.name): path for path in (self.files / str(self._after)).glob("*") if not path.suffix}
        return (read(saves.get(steps, saves[max(saves)])) if saves else None), steps in saves

    def _give_seeds(self, model: Any, steps: int) -> None:
        """Let generators of random numbers go on, so that the rest can be compared."""
        saved, _ = self.saved(steps)
        values = [one for name, one in (saved.state if saved else {}).items() if is_seed(name)]
        for variable, value in zip(seeds_of(model), values):
            variable.assign(value)

    def _callbacks(self, fit: FitArguments, model: Any) -> Tuple[List[Any], List[Any]]:
        """Callbacks of Keras whose time is not taken, and those of the job, or what replaces them."""
        self.is_built, self.has_others = model.built, bool(fit.callbacks)
        if self.has_own:
            if other := other_place(fit.callbacks, self.folder):
                raise PartError(PART, f"{other}, which is not in the folder that {FOLDER!r} names: put it there")
            return [], fit.callbacks
        place, keras = self.folder / self.name, keras_of(model).callbacks
        saving = [] if self.name == "backup" else [keras.ModelCheckpoint(str(place / "{epoch:03d}.keras"))]
        restores = self.is_built and self.name not in _FROM_FILES
        return [keras.BackupAndRestore(str(place / "backup"))] if restores else [], saving

    def _epoch(self, fit: FitArguments) -> Tuple[Any, int, int]:
        """The data of each epoch, its steps, and the rows of its largest part of a batch."""
        most, given = self._settings["steps"], fit.number("steps_per_epoch", self._settings.get("steps_per_epoch"))
        data = Data(fit.apply(self._made("data")), own=True, batch_size=fit.number("batch_size"))
        found = data.examine(most, given)
        problem = found.get("problem") or found.get("unread")
        if problem:
            raise PartError("data", str(problem))
        steps = min(most, given or found.get("batches") or most)
        if data.kind == "generator" and not given:
            steps = given = max(1, min(steps, (found.get("batches") or _EPOCHS * most) // (2 * _EPOCHS)))
        self.is_cut = not given and not found.get("endless") and found.get("batches") != steps
        return data.epoch(lambda: fit.apply(self._made("data")), given and steps), steps, data.most_rows

    def _load(self) -> Any:
        """The newest file that can be loaded.

        Raises:
            Exception: none can. It is the error of the newest.
        """
        errors = []
        for path in self.watch.loadable():
            try:
                model = self._made("model")
                if not _is_whole(path):
                    model.load_weights(str(path))
                    return model
                with self._strategy.scope():
                    return keras_of(model).models.load_model(str(path))
            except Exception as error:
                errors.append(error)
        raise errors[0]


def _is_whole(path: Path) -> bool:
    """Whether a file has the model, and not only its weights."""
    if path.suffix == ".keras":
        return True
    with h5py.File(path, "r") as file:
        return "model_config" in file.attrs


def whole(own: Own, *, shaken: bool = False) -> None:
    """Train without a kill."""
    end = own.train(shaken=shaken)
    if not end.steps:
        raise PartError("the model", "it has no optimizer that counts its steps: pass one to compile, or keep it in it")
    write(own.files / f"{own.name}.end", end)
    write(own.files / f"{own.name}.more", (own.watch.first_epoch, own.watch.numbers))
    left_out = own.has_others and not own.has_own
    own.note({"own": own.has_own, "own_left_out": left_out, "backs_up": own.is_built, "kinds": own.watch.kinds})
    shutil.rmtree(str(own.folder / own.name))


def killed(own: Own, kill: str, written: str = "") -> None:
    """Train until it is killed; in a save, while it writes a file of this kind."""
    own.train(kill=kill, written=written)


def again(own: Own, name: str) -> None:
    """Go on in a copy of what a killed process left, and compare."""
    kill, files = IN_A_SAVE if name == "half" else BETWEEN_SAVES, own.files
    try:
        shutil.copytree(str(own.folder / kill), str(own.folder / name), dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise SaveError(f"it could not be copied: {error}") from error
    end = own.train(after=kill)
    started = own.watch.started
    saved, is_known = own.saved(started.steps if started else 0)
    if started is None or saved is None:
        return
    wrong = unequal(saved.state, started.state)
    lost, seeds = ([one for one in wrong if is_seed(one) is kind][:SHOWN] for kind in (False, True))
    if name == "alone":
        own.note({"lost_alone": lost})
    elif name == "half":
        own.note({"half": "gone" if not started.steps else "silent" if lost and is_known else "noticed"})
    elif name == "backup":
        own.note({"backup_step": started.steps, "backup_apart": lost or _after(own, saved, end).get("apart", [])})
    else:
        found = {"variables": len(started.state), "restore_s": own.watch.restore_s, "lost": lost, "seeds": seeds}
        found["generators"] = sum(map(is_seed, started.state))
        forgotten = _forgotten(saved, started, files) if saved.steps == started.steps else []
        own.note({**found, "forgotten": forgotten, "resumed_step": started.steps, **_after(own, saved, end)})


def _forgotten(saved: Snapshot, started: Snapshot, files: Path) -> List[str]:
    """Numbers of callbacks that are lost, and not others in each run. Keras changes signs when it first needs them."""
    _, numbers = read(files / "whole.more")
    same = numbers.get(saved.steps, {})
    return [
        name
        for name, value in saved.numbers.items()
        if same.get(name) == value and abs(started.numbers.get(name, math.nan)) != abs(value)
    ][:SHOWN]


def _begins_again(steps: int, end: Snapshot, *others: Snapshot) -> bool:
    """Whether the first examples are those of the first step, and the others have different ones after these steps."""
    first = end.rows[:1]
    return all(one.rows[:1] == first != one.rows[steps : steps + 1] for one in others)


def _after(own: Own, saved: Snapshot, end: Snapshot) -> Facts:
    """How the rest of the training differs from that of the run that was not killed."""
    files, epoch = own.files, own.watch.steps_per_epoch
    if not end.rows:
        return {"position_unread": "its only save is after the last step: use more --steps, or save more often"}
    wanted, noise = read(files / "whole.end"), read(files / "noise.end")
    if wanted.rows != noise.rows or saved.rows != wanted.rows[: len(saved.rows)]:
        reason = (
            "its examples differ from run to run: give it a seed; of a generator, fit may lose other batches each time"
        )
        return {"position_unread": reason, "begins_again": _begins_again(len(saved.rows), end, wanted, noise)}
    if [*saved.rows, *end.rows] == wanted.rows:
        first_epoch, _ = read(files / "whole.more")
        differing = apart(first_epoch, wanted.state, noise.state, end.state)[:SHOWN]
        return {"repeated": 0, "missing": 0, "apart": differing}
    if own.is_cut and not len(saved.rows) % epoch and end.rows == wanted.rows[: len(wanted.rows) - len(saved.rows)]:
        # A whole pass has each example once, in any order; of a shuffled one, its first steps have others each time.
        return {"repeated": 0, "missing": 0}
    once, trained = (Counter(chain.from_iterable(rows)) for rows in (wanted.rows, [*saved.rows, *end.rows]))
    epoch_again = (own.watch.began_with or 0) < len(saved.rows) // epoch
    repeated, missing = sum((trained - once).values()), sum((once - trained).values())
    return {"repeated": repeated, "missing": missing, "epoch_again": epoch_again}
