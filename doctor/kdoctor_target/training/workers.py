"""Real processes on this machine that train together over 127.0.0.1, and whatever becomes of them.

Each task is forked off the case's process before TensorFlow has touched a device. It says what it does in a
file of its own, and writes the stacks of all its threads beside the case's when it is asked to. None of them
outlives the case: Linux ends them with it, elsewhere they look for their parent.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import IO, Callable, Dict, List, Optional, Sequence

from kdoctor_target.runner.case import Case, NotHere
from kdoctor_target.runner.cleanup import Leftovers
from kdoctor_target.runner.phases import where
from kdoctor_target.runner.task_process import POLL_S, Facts, OwnFiles, Task, TaskProcess

__all__ = ["Cluster", "Facts", "Task", "WorkerFailed", "expect_all_trained", "note_workers"]

STACKS_S = 0.3
"""Seconds that a process gets to write its stacks."""

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Cluster:
    """The tasks of one case. :meth:`end` must be called, whatever happens."""

    def __init__(self, case: Case, *, own_files: bool = False, **sizes: int) -> None:
        """Find a port for each task.

        Args:
            case: the case that they belong to.
            own_files: whether each has files of its own for its stacks and its error output, so that it can be told
                whose they are.
            sizes: role to number of tasks.

        Raises:
            NotHere: processes cannot be forked here.
        """
        if not hasattr(os, "fork"):
            case.skip("this system cannot fork processes")
        self._case = case
        self._stacks = _beside(case.stem, "stacks")
        self._own_files = own_files
        ports = iter(_free_ports(sum(sizes.values())))
        self.addresses = {
            role: ["127.0.0.1:{}".format(next(ports)) for _ in range(size)] for role, size in sizes.items()
        }
        self._processes: List[TaskProcess] = []

    def config(self, task: Task) -> str:
        """TF_CONFIG of that task."""
        return json.dumps({"cluster": self.addresses, "task": {"type": task.role, "index": task.number}})

    def start(self, task: Task, function: Callable[[Case, Task], None], *, with_config: bool = True) -> None:
        """Run the function in a process of its own, with that task's TF_CONFIG."""
        stem = _beside(self._case.stem, "{}-{}".format(task.role, task.number))
        own = OwnFiles(_beside(stem, "stacks"), _beside(stem, "stderr")) if self._own_files else None
        for path in own or ():
            path.touch()
        sys.stderr.flush()
        parent = os.getpid()
        pid = os.fork()
        if pid:
            self._processes.append(TaskProcess(task, pid, stem, own))
            return
        try:
            _die_with(parent)
            _write_stacks_on_request(own.stacks if own else self._stacks)
            if own:
                _write_errors_to(own.errors)
            if with_config:
                os.environ["TF_CONFIG"] = self.config(task)
            os.environ["no_grpc_proxy"] = "127.0.0.1"  # noqa: SIM112 - gRPC's name; a proxy knows no loopback
            _run_task(self._case, task, stem, function)
        finally:
            os._exit(1)

    def processes(self) -> Dict[str, int]:
        """Process id of every task that was started."""
        return {process.task.name: process.pid for process in self._processes}

    def kill(self, task: Task) -> None:
        """End one task, as the kernel does when memory is short."""
        for process in self._processes:
            if process.task == task:
                os.kill(process.pid, signal.SIGKILL)

    def steps(self, task: Task) -> int:
        """How many steps that task has finished by now."""
        return next((process.facts().get("steps") or 0 for process in self._processes if process.task == task), 0)

    def wait(self, patience_s: float, grace_s: Optional[float] = None) -> List[Facts]:
        """Wait until every task has ended; those that do not are asked for their stacks and ended.

        Args:
            patience_s: seconds for all of them.
            grace_s: seconds for the others once one ended badly; as much as is left if None.

        Returns:
            The facts of each, in the order of their start, by the names of ``SmokeWorker``'s fields and of
            ``SmokeCase``'s.
        """
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            running = [process for process in self._processes if process.poll()]
            if not running:
                break
            if grace_s is not None and any(process.ended_badly() for process in self._processes):
                end = min(end, time.monotonic() + grace_s)
                grace_s = None
            time.sleep(POLL_S)
        self.end()
        return [process.conclude() for process in self._processes]

    def end(self) -> None:
        """End every task that still runs, with its stacks; nothing that it started or shared stays."""
        running = [process for process in self._processes if process.poll()]
        for process in running:
            process.give_up()
            if process.own is None:
                with self._stacks.open("a", encoding="utf-8") as file:
                    file.write("{}:\n".format(process.task.name))
            os.kill(process.pid, signal.SIGUSR1)
            time.sleep(STACKS_S)  # one after another, for they write to one file
        left = [Leftovers(process.pid) for process in running]
        for process in running:
            process.end()
        for one in left:
            one.end()
        for one in left:
            one.remove()


_WORKER_FIELDS = (
    "name", "outcome", "phase", "finished", "steps", "error_type", "error_message", "exit_code", "signal", "losses",
    "weight_deviation", "seconds",
)  # fmt: skip


def note_workers(case: Case, ended: Sequence[Facts]) -> None:
    """Say how each ended, and everything that the first of them said as the case's own."""
    case.note(workers=[{name: facts[name] for name in _WORKER_FIELDS if name in facts} for facts in ended])
    own = {
        name: value
        for name, value in ended[0].items()
        if name not in ("name", "seconds", "outcome", "error_type", "error_message", "exit_code", "signal", "phase")
    }
    case.note(**own)
    if ended[0].get("phase"):
        case.phase(ended[0]["phase"], finished=False)


class WorkerFailed(Exception):  # noqa: N818 - says what happened
    """A process of the cluster did not finish."""


def expect_all_trained(ended: Sequence[Facts]) -> None:
    """Nothing, if every process finished.

    Raises:
        WorkerFailed: one did not. It carries the words of the first that raised or died; only if none did,
            that of one that was waited for in vain.
    """
    bad = [facts for facts in ended if facts["outcome"] != "trained"]
    bad.sort(key=lambda facts: ("raised", "died", "timed-out", "skipped").index(facts["outcome"]))
    if not bad:
        return
    first = bad[0]
    place = where(dict(first, finished=None))
    there = " " + place if place else ""
    if first["outcome"] == "raised":
        raise WorkerFailed("{}: {}{}: {}".format(first["name"], first["error_type"], there, first["error_message"]))
    if first["outcome"] == "died":
        by = first["signal"] or "status {}".format(first["exit_code"])
        raise WorkerFailed("{} ended by {}{}".format(first["name"], by, " " + where(first) if place else ""))
    waiting = ", ".join("{} {}".format(facts["name"], where(facts) or "at its start") for facts in bad)
    raise WorkerFailed("these waited in vain and were ended: {}".format(waiting))


def _run_task(case: Case, task: Task, stem: Path, function: Callable[[Case, Task], None]) -> None:
    with stem.with_name(stem.name + ".events").open("a", encoding="utf-8") as events:
        own = Case(events, case.devices_kind, case.replicas, stem=stem, deadline_s=case.deadline_s)
        try:
            function(own, task)
            own.write({"end": {"outcome": "trained"}})
        except NotHere as reason:
            own.write({"end": {"outcome": "skipped", "error_message": str(reason)}})
        except BaseException as error:
            traceback.print_exc()
            message = str(error)[:2000]
            own.write({"end": {"outcome": "raised", "error_type": type(error).__name__, "error_message": message}})
    sys.stderr.flush()
    os._exit(0)


def _beside(stem: Path, kind: str) -> Path:
    return stem.with_name("{}.{}".format(stem.name, kind))


def _write_errors_to(path: Path) -> None:
    errors = os.open(str(path), os.O_WRONLY | os.O_APPEND)
    os.dup2(errors, 1)
    os.dup2(errors, 2)


def _free_ports(count: int) -> List[int]:
    """Ports of the loopback that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


_kept_open: List[IO[str]] = []
"""Files that ``faulthandler`` writes to, which Python must not close."""


def _write_stacks_on_request(path: Path) -> None:
    """Write the stacks of all threads on a crash and on SIGUSR1, without Python's lock."""
    file = path.open("a")
    _kept_open.append(file)
    faulthandler.enable(file)
    # The case's own watch (dump_traceback_later) is a thread and stayed behind; to cancel it would wait for ever.
    faulthandler.register(signal.SIGUSR1, file)


def _die_with(parent: int) -> None:
    """Have this process end when its parent does."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.getppid() != parent:
        os._exit(1)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
