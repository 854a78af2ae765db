"""The job's own training loop, killed and restored: ``kdoctor check --loop MODULE:FUNCTION --restore DIR``.

The loop is a generator function of the folder where it saves. It begins with the newest save there, and yields numbers
after each step, such as the loss. So it may train with any framework and in any way. It runs in fresh processes:

- ``whole`` and ``noise`` are not killed. Where their numbers differ, a difference after a kill means nothing.
- ``killed`` kills itself between two steps, after a save. ``torn`` is killed when a save has begun there.
- ``load`` and ``half`` go on in a copy of what these left. Their numbers must be those of ``whole`` from some step on.
"""

from __future__ import annotations

import collections
import json
import math
import os
import shutil
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Sequence

import numpy as np
import tensorflow as tf

from kdoctor_job.target.going_on import apart, goes_on, scale_of
from kdoctor_job.target.measures import BEYOND_ROUNDING
from kdoctor_job.target.parts import PartError, call, describe_kind, find, name_of, takes
from kdoctor_job.target.restoring import end_of, has_no_room, in_fresh_processes, in_new_folder
from kdoctor_job.target.resuming import FOLDER
from kdoctor_job.target.strategies import replace_own
from kdoctor_job.target.watching import BETWEEN_SAVES, IN_A_SAVE, Facts, kill_in_a_save, kinds_of, sizes
from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import make_strategy
from kdoctor_target.training.workers import Task

_LEAST = 1e-5
"""Differences that count as rounding in any case, relative to the largest number."""
_LOOK_S = 0.05
"""Seconds after each step, in which a save that took less is seen."""


def own_loop(case: Case) -> None:
    """Examine the loop named by the settings, in a fresh folder of the one that ``restore`` names."""
    in_new_folder(case, lambda folder, say: _Loop(case, folder, say).run())


class _Loop:
    def __init__(self, case: Case, folder: Path, say: Callable[..., None]) -> None:
        self._case = case
        self._folder = folder
        self._files = case.file("loop")
        self._say = say
        self._most = 2 * max(2, int(case.settings["steps"]))
        self._workers = int(case.settings["workers"])
        self._moment = int(case.settings.get("moment") or 0)
        """Steps of the second half before the kill, and milliseconds after a save has begun."""

    def run(self) -> None:
        self._files.mkdir()
        for name in ("whole", "noise"):
            done = self._process(name)
            if done["outcome"] != "trained":
                self._say(problem=end_of(done))
                return
            shutil.rmtree(str(self._folder / name))
        whole = self._numbers("whole")
        noise = apart(whole, self._numbers("noise"), scale_of(whole))
        self._say(steps=len(whole), noise=min(noise, 1.0))
        killed = self._process(BETWEEN_SAVES, kill=BETWEEN_SAVES)
        if killed.get("signal") != "SIGKILL":
            self._say(**({"unsaved": True} if killed["outcome"] == "trained" else {"problem": end_of(killed)}))
            return
        killed_after, tolerance = len(self._numbers(BETWEEN_SAVES)), max(_LEAST, BEYOND_ROUNDING * noise)
        if goes_on(whole, whole, killed_after, tolerance) != (0, None):
            return  # A loop that begins again would pass, too.
        self._say(killed_after=killed_after)
        self._go_on("load", BETWEEN_SAVES, tolerance)
        left = self._folder / BETWEEN_SAVES
        for written in kinds_of(left, sizes(left)):
            if self._process(IN_A_SAVE, kill=IN_A_SAVE, written=written).get("signal") == "SIGKILL":
                half = self._go_on("half", IN_A_SAVE, tolerance, half_file=written)
                if not half.get("after") or half["differs"] is not None:
                    break
            shutil.rmtree(str(self._folder / IN_A_SAVE))

    def _go_on(self, name: str, left_by: str, tolerance: float, **more: str) -> Facts:
        """Let a process go on in a copy of what another left, and note how it does."""
        try:
            shutil.copytree(str(self._folder / left_by), str(self._folder / name))
            done = self._process(name)
            problem = None if done["outcome"] == "trained" else end_of(done)
        except OSError as error:
            problem = str(error)
        shutil.rmtree(str(self._folder / name), ignore_errors=True)
        found: Facts = {"problem": problem}
        if problem is None:
            numbers = self._numbers("whole"), self._numbers(name)
            found = dict(zip(("after", "differs"), goes_on(*numbers, len(self._numbers(left_by)), tolerance)))
        self._say(**({"no_room": True} if has_no_room(problem) else {name: found, **more}))
        return found

    def _process(self, name: str, kill: Optional[str] = None, written: str = "") -> Facts:
        return in_fresh_processes(self._case, name, partial(self._train, kill=kill, written=written), self._workers)

    def _train(self, case: Case, task: Task, addresses: Sequence[str], kill: Optional[str], written: str) -> None:
        self._take_devices(case, task.number)
        if self._workers > 1:
            me = {"type": "worker", "index": task.number}
            os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": me})
        place = self._folder / task.role
        place.mkdir(exist_ok=True)
        before = sizes(place)
        steps = zip(range(1, self._most + 1), self._steps(place))
        if task.number:
            collections.deque(steps, maxlen=0)
            return
        with self._file(task.role).open("w") as file:
            for step, value in steps:
                file.write(json.dumps(_flat(value)) + "\n")
                file.flush()
                is_half = step >= self._most // 2
                is_time = step >= min(self._most // 2 + self._moment, self._most - 1)
                if kill == BETWEEN_SAVES and is_time and sizes(place) != before:
                    os.kill(os.getpid(), signal.SIGKILL)
                if kill == IN_A_SAVE and step == self._most // 2:
                    kill_in_a_save(place, sizes(place), written, self._moment)
                if kill == IN_A_SAVE and is_half:
                    time.sleep(_LOOK_S)

    def _take_devices(self, case: Case, worker: int) -> None:
        """A strategy of the loop gets the replicas of the examination, or a worker its share of the GPUs."""
        if self._workers > 1:
            gpus = tf.config.list_physical_devices("GPU")
            tf.config.set_visible_devices(gpus[worker :: self._workers], "GPU")
        elif os.environ.get("KERAS_BACKEND", "tensorflow") == "tensorflow":
            replace_own(make_strategy(case))

    def _steps(self, place: Path) -> Iterator[Any]:
        function = find("loop", self._case.settings["loop"])
        if not takes(function, FOLDER):
            raise PartError("loop", f"{name_of(function)} has no parameter {FOLDER}, where it would save")
        steps = call("loop", function, folder=str(place))
        if not isinstance(steps, Iterator):
            made = describe_kind(steps)
            raise PartError("loop", f"{name_of(function)} returned {made}, expected to yield numbers after each step")
        return steps

    def _numbers(self, name: str) -> Any:
        """What a process yielded: an array of steps by numbers."""
        steps = [json.loads(line) for line in self._file(name).read_text().splitlines()]
        most = max(map(len, steps), default=0)
        return np.array([[*step, *[math.nan] * (most - len(step))] for step in steps], "float64").reshape(-1, most)

    def _file(self, name: str) -> Path:
        return self._files / name


def _flat(value: Any) -> List[float]:
    return [float(number) for leaf in tf.nest.flatten(value) for number in np.asarray(leaf, "float64").ravel()]
