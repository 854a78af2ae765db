"""Whether the job comes back: it is trained, saved, killed and restored in fresh processes, and goes on."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, Sequence

import tensorflow as tf

from kdoctor_job.target import resuming
from kdoctor_job.target.parts import PartError, describe, find
from kdoctor_job.target.resuming import SHOWN, Own, SaveError
from kdoctor_job.target.strategies import replace_own
from kdoctor_job.target.watching import BETWEEN_SAVES, IN_A_SAVE
from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import make_strategy
from kdoctor_target.training.workers import Cluster, Facts, Task

_SEED = 7
_FAILED, _SAVING = "failed", "saving"
_GRACE_S = 10.0
"""Seconds for the other processes after one has ended."""
_NO_ROOM = tuple(text for code in (errno.ENOSPC, errno.EDQUOT) for text in (f"[Errno {code}]", os.strerror(code)))
"""What an error says if the disk is full, in bytes or in files, or a quota is."""
_PREFIX, _LOCK = "kdoctor-restore-", "in-use"


def restore(case: Case) -> None:
    """Examine the job named by the settings, in a fresh folder of the one that ``restore`` names."""
    in_new_folder(case, lambda folder, say: _Restoring(case, folder, say).run())


def in_new_folder(case: Case, work: Callable[[Path, Callable[..., None]], None]) -> None:
    """Call ``work`` with a new folder in the one that ``restore`` names, and a function that notes facts of the job.

    A folder that does not exist yet is made, as the job would, and removed again.
    """
    place = Path(case.settings["restore"])
    facts: Facts = {"folder": str(place)}

    def say(**more: Any) -> None:
        facts.update(more)
        case.note(job=facts)

    say()
    missing = [path for path in (place, *place.parents) if not path.exists()]
    try:
        place.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=str(place)))
    except OSError as error:
        say(save_problem=f"{error.strerror}: {place}")
        return
    try:
        with contextlib.suppress(OSError):
            (folder / _LOCK).touch()
        with _locked(folder):
            say(left_behind=[str(path) for path in place.glob(f"{_PREFIX}*") if _is_left(path)][:SHOWN])
            work(folder, say)
    finally:
        shutil.rmtree(str(folder), ignore_errors=True)
        with contextlib.suppress(OSError):  # another process uses it by now
            for path in missing:
                path.rmdir()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Lock the folder until this process ends, if no other process has; says whether this one has the lock.

    It is that of a file, because not every network file system locks folders, or of the folder if it had no space.
    """
    path = folder / _LOCK
    kind, path = (os.O_RDWR, path) if path.exists() else (os.O_RDONLY, folder)
    is_locked = False
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            number = os.open(str(path), kind)
            held.callback(os.close, number)
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = True
        yield is_locked


def _is_left(folder: Path) -> bool:
    """Whether no process works in the folder; not if this cannot be known."""
    with _locked(folder) as is_left:
        return is_left


class _Restoring:
    def __init__(self, case: Case, folder: Path, say: Callable[..., None]) -> None:
        self._case = case
        self._folder = folder
        self._files = case.file("restore")
        self._say = say

    def run(self) -> None:
        self._files.mkdir()
        whole = self._process("whole", resuming.whole)
        noise = self._process("noise", partial(resuming.whole, shaken=True)) if whole["outcome"] == "trained" else whole
        if noise["outcome"] != "trained":
            self._say(**{"save_problem" if (noise.get("job") or {}).get(_SAVING) else "not_run": end_of(noise)})
            return
        self._say(free_bytes=shutil.disk_usage(str(self._folder)).free, **whole["job"])
        killed = self._process(BETWEEN_SAVES, partial(resuming.killed, kill=BETWEEN_SAVES))
        if killed.get("signal") != "SIGKILL":
            trained = killed["outcome"] == "trained"
            self._say(**({"unsaved": True} if trained else {"save_problem": end_of(killed)}))
            return
        saved = killed.get("job") or {}
        # Copies of the save before are made with the second save, which only the whole run reaches.
        kinds = {*whole["job"]["kinds"], *saved.get("kinds", ())}
        self._say(**{**saved, "kinds": sorted(kinds)})
        # BackupAndRestore refuses a model that is not built.
        for name in ("load", "alone", *(["backup"] if whole["job"]["backs_up"] and not whole["job"]["own"] else [])):
            self._note(name)
        shutil.rmtree(str(self._folder / BETWEEN_SAVES))
        for written in saved.get("kinds", ()):
            torn = self._process(IN_A_SAVE, partial(resuming.killed, kill=IN_A_SAVE, written=written))
            if torn.get("signal") == "SIGKILL" and self._note("half") != {"half": "noticed"}:
                self._say(half_file=written)
                break
            shutil.rmtree(str(self._folder / IN_A_SAVE))

    def _note(self, name: str) -> Facts:
        """Let a process go on, and note what it finds."""
        done = self._process(name, partial(resuming.again, name=name))
        problem = None if done["outcome"] == "trained" else end_of(done)
        failed: Facts = {"no_room": True} if has_no_room(problem) else {f"{name}_problem": problem}
        found = failed if problem else done.get("job") or {}
        self._say(**found)
        shutil.rmtree(str(self._folder / name), ignore_errors=True)
        return found

    def _process(self, name: str, work: Callable[[Own], None]) -> Facts:
        def run(case: Case, *_: Any) -> None:
            work(Own(case, self._strategy(case, alone=name == "alone"), self._folder, self._files, name))

        return in_fresh_processes(self._case, name, run)

    @staticmethod
    def _strategy(case: Case, *, alone: bool) -> Any:
        """The strategy, or the default one; everything is seeded."""
        strategy = tf.distribute.get_strategy() if alone else make_strategy(case)
        replace_own(strategy)
        find("model", case.settings["model"])  # it may be what imports Keras
        tf.keras.utils.set_random_seed(_SEED)
        return strategy


def in_fresh_processes(
    case: Case, name: str, work: Callable[[Case, Task, Sequence[str]], None], workers: int = 1
) -> Facts:
    """Run a part of the examination in new processes, each of which gets the addresses of all.

    Returns:
        The facts of the first, with how it ended. The others end soon after it.
    """
    case.phase(f"restore: {name}")
    cluster = Cluster(case, separate_files=True, **{name: workers})

    def run(task_case: Case, task: Task) -> None:
        task_case.settings = case.settings
        sys.path.insert(0, str(Path.cwd()))
        try:
            work(task_case, task, cluster.addresses[name])
        except Exception as error:
            task_case.note(job={_FAILED: _said(error), _SAVING: isinstance(error, SaveError)})
            raise

    try:
        cluster.start_all([Task(name, number) for number in range(workers)], run, with_config=False)
        return cluster.wait(case.deadline_s / 3, _GRACE_S)[0]
    finally:
        cluster.end()


def _said(error: Exception) -> str:
    """The error in one line. Keras puts what it could not load before the reason."""
    if isinstance(error, (SaveError, PartError)):
        return str(error)
    _, quotes, reason = str(error).rpartition("Exception encountered: ")
    return f"{type(error).__name__}: {reason.partition(' Full object config')[0]}" if quotes else describe(error)


def end_of(facts: Facts) -> str:
    """How a process ended that did not train to its end."""
    if facts["outcome"] == "raised":
        return str(facts["job"][_FAILED])
    return f"the process {facts['outcome']} ({facts.get('signal') or facts.get('exit_code') or 'no signal'})"


def has_no_room(problem: Optional[str]) -> bool:
    """Whether there was no space. Behind the first save, this is because of the copies that kdoctor makes."""
    return any(said in (problem or "") for said in _NO_ROOM)
