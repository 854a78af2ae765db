"""What the job does with its folder in one process, and its state between its steps."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import numpy as np

from kdoctor_job.target.states import State

if TYPE_CHECKING:
    from kdoctor_job.target.rows import Rows

BETWEEN_SAVES, IN_A_SAVE = "killed", "torn"
"""The two kinds of end, and the names of their processes."""
LOADABLE = (".keras", ".h5")
_MOST_KEPT = 3
_SAVING_S = 10.0
"""Seconds at most for a thread in which a callback saves: the job is looked at before it trains on."""

Facts = Dict[str, Any]


class Snapshot(NamedTuple):
    """The job between two steps."""

    steps: int
    """Of the optimizer."""
    numbers: Dict[str, float]
    """Of its callbacks."""
    state: State
    rows: Rows
    """Of all steps of this process."""


class NothingRestoredError(Exception):
    """Training begins with the first step, although there are files that can be loaded."""


class Watch:
    """What the job does with its folder, and its state meanwhile."""

    def __init__(self, place: Path, kept: Path, note: Callable[[Facts], None], *, is_own: bool) -> None:
        self._place = place
        self._kept = kept
        self._note = note
        self._loadable = LOADABLE if is_own else LOADABLE[:1]
        self._counted = ("",) if is_own else LOADABLE[:1]
        self.look: Callable[[], Snapshot]
        """The job now."""
        self.brief: Callable[[], Tuple[int, Dict[str, float]]]
        """Its steps and the numbers of its callbacks."""
        self.go_on: Callable[[int], None]
        """Called with its steps before the first one."""
        self.kill: Optional[str] = None
        self.written = ""
        """The kind of file in whose save it ends, see :func:`kinds_of`."""
        self.moment = 0
        """Steps of the last epoch before the kill, 0 for half of them, and milliseconds after a save has begun."""
        self.resumes = False
        self.steps_per_epoch = 1
        self.inside = False
        """Whether the job's callbacks are running."""
        self.started: Optional[Snapshot] = None
        self.began_with: Optional[int] = None
        """The epoch with which ``fit`` begins."""
        self.first_epoch: State = {}
        self.numbers: Dict[int, Dict[str, float]] = {}
        """Of the callbacks, by steps."""
        self.restore_s = 0.0
        self.kinds: List[str] = []
        """Of the files that are saves, see :func:`kinds_of`."""
        self._epoch = 0
        self._entered = 0.0
        self._threads: Set[threading.Thread] = set()
        self._bytes = 0
        self._seen = sizes(place)

    def enter(self) -> None:
        """The job's callbacks begin."""
        self.inside, self._entered = True, time.monotonic()
        self._threads = set(threading.enumerate())

    def on_train_begin(self) -> None:
        """They have begun the training, and restored the job if they do."""
        self.inside = False
        self.restore_s += time.monotonic() - self._entered
        self._seen = sizes(self._place)
        self.started = self.look()
        if self.resumes and not self.started.steps and self.loadable():
            raise NothingRestoredError
        self.go_on(self.started.steps)

    def on_epoch_begin(self, epoch: int) -> None:
        """In the last epoch, a save ends this process, if it is to be killed in one."""
        self._epoch = epoch
        self.began_with = epoch if self.began_with is None else self.began_with
        if epoch and self.kill == IN_A_SAVE:
            kill_in_a_save(self._place, self._seen, self.written, self.moment)

    def leave(self, batch: Optional[int]) -> None:
        """They have ended after a step, or after an epoch (None)."""
        self.inside = False
        for saving in set(threading.enumerate()) - self._threads:
            if not saving.daemon:
                saving.join(_SAVING_S)
        seconds, seen = time.monotonic() - self._entered, sizes(self._place)
        changed = {path: size for path, (size, at) in seen.items() if self._seen.get(path) != (size, at)}
        written = sum(size for path, size in changed.items() if path.name.endswith(self._counted))
        self._seen = seen
        steps, numbers = self.brief()
        self.numbers[steps] = numbers
        if batch is None and self._epoch == 0:
            self.first_epoch = self.look().state
        # Less than half of what it has written at a time is a log.
        if written > self._bytes // 2:
            self._bytes = max(self._bytes, written)
            self.kinds = kinds_of(self._place, seen)
            self._note({"save_s": seconds, "save_bytes": written, "kinds": self.kinds})
            self._keep(self.look())
        # At least one step is left with which the job goes on.
        moment = min(self.moment or self.steps_per_epoch // 2, self.steps_per_epoch - 1)
        is_time = batch is None or batch + 1 >= moment
        if self.kill == BETWEEN_SAVES and self._bytes and self._epoch and is_time:
            os.kill(os.getpid(), signal.SIGKILL)

    def loadable(self) -> List[Path]:
        """Files with a model or its weights, the newest first."""
        found = {path: at for path, (_, at) in sizes(self._place).items() if path.suffix in self._loadable}
        return sorted(found, key=lambda path: found[path], reverse=True)

    def _keep(self, now: Snapshot) -> None:
        place = self._kept / f"{now.steps:08}"
        write(place.with_suffix(".part"), now)
        place.with_suffix(".part").replace(place)
        for old in sorted(self._kept.iterdir())[:-_MOST_KEPT]:
            old.unlink()


def kinds_of(place: Path, seen: Dict[Path, Tuple[int, int]]) -> List[str]:
    """The kinds of files that are saves: each with its folder in this one, and its suffix."""
    largest: Dict[str, int] = {}
    for path, (size, _) in seen.items():
        largest[_kind(place, path)] = max(size, largest.get(_kind(place, path), 0))
    return [kind for kind, size in sorted(largest.items()) if size > max(largest.values()) // 2]


def _kind(place: Path, path: Path) -> str:
    weights = ".weights.h5"  # as Keras calls a file without the model
    return str(path.with_name(f"*{weights if path.name.endswith(weights) else path.suffix}").relative_to(place))


def kill_in_a_save(place: Path, seen: Dict[Path, Tuple[int, int]], kind: str, moment: int = 0) -> None:
    """From now on, kill this process as soon as there are other bytes in a file of this kind; of any if it is empty.

    Args:
        place: the folder of the files.
        seen: their sizes and times now.
        kind: see :func:`kinds_of`.
        moment: milliseconds after that.
    """

    def watch() -> None:
        while True:
            for path, now in sizes(place).items():
                if now[0] and kind in ("", _kind(place, path)) and seen.get(path) != now:
                    time.sleep(moment / 1000)
                    os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def sizes(place: Path) -> Dict[Path, Tuple[int, int]]:
    """Size and time of each file. Files and folders that are being replaced are left out."""
    found = {}
    for folder, _, names in os.walk(place):
        for path in (Path(folder, name) for name in names):
            with contextlib.suppress(OSError):
                about = path.stat()
                found[path] = (about.st_size, about.st_mtime_ns)
    return found


def numbers_of(callbacks: List[Any]) -> Dict[str, float]:
    """The public numbers of the callbacks."""
    return {
        f"{type(one).__name__}.{name}": float(value)
        for one in callbacks
        for name, value in sorted(vars(one).items())
        if not name.startswith("_") and isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    }


def around(keras: Any, watch: Watch) -> Tuple[Any, Any, Any]:
    """Callbacks before all others, before those whose time is taken, and after them."""
    made = keras.callbacks.LambdaCallback  # Keras 3 passes the logs by name, Keras 2 does not

    def enter(*_: Any, **__: Any) -> None:
        watch.enter()

    firsts = [made(on_train_begin=enter, on_train_batch_end=enter, on_epoch_end=enter) for _ in range(2)]
    last = made(
        on_train_begin=lambda *_, **__: watch.on_train_begin(),
        on_epoch_begin=lambda epoch, *_, **__: watch.on_epoch_begin(epoch),
        on_train_batch_end=lambda batch, *_, **__: watch.leave(batch),
        on_epoch_end=lambda *_, **__: watch.leave(None),
    )
    return (*firsts, last)


def write(path: Path, value: Any) -> None:
    """Keep a value for another process of this run."""
    path.write_bytes(pickle.dumps(value))


def read(path: Path) -> Any:
    """What :func:`write` kept."""
    return pickle.loads(path.read_bytes())  # noqa: S301 - written by another process of this run, in the folder of this run
