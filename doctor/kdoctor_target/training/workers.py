"""Real processes on this machine that train together over 127.0.0.1, and their outcomes.

Each task is forked from the case's process before TensorFlow has used a device. It reports to its own events file, and
writes the stacks of all its threads on request. Tasks end with the case: Linux kills them, and on other systems they
watch their parent.
"""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Callable, Dict, Iterable, List, Optional, Sequence

from kdoctor_target.runner.case import Case, NotHere
from kdoctor_target.runner.case_files import redirect_output, write_stacks_to
from kdoctor_target.runner.cleanup import ProcessTree, shared_memory
from kdoctor_target.runner.orphans import watch_parent
from kdoctor_target.runner.outcome import describe_error
from kdoctor_target.runner.phases import where
from kdoctor_target.runner.task_process import POLL_S, Facts, Task, TaskFiles, TaskProcess

__all__ = ["Cluster", "Facts", "Task", "WorkerFailed", "expect_all_trained", "in_a_process", "note_workers"]

STACKS_S = 0.3
"""Seconds that a process gets to write its stacks."""

STAY_S = 10.0
"""Seconds that a process that has finished waits for the others at most."""

LINGER_S = 3.0
"""Seconds that a process on another node stays after its last message, which the others may still fetch from it."""


class Cluster:
    """The tasks of one case. :meth:`end` must always be called."""

    def __init__(self, case: Case, *, separate_files: bool = False, **sizes: int) -> None:
        """Find a port for each task.

        Args:
            case: the case that the tasks belong to.
            separate_files: whether each task has separate files for its stacks and its error output.
            sizes: role to number of tasks.

        Raises:
            NotHere: processes cannot be forked on this system.
        """
        if not hasattr(os, "fork"):
            case.skip("this system cannot fork processes")
        self._case = case
        self._stacks = case.file("stacks")
        self._earlier = shared_memory()
        self._separate_files = separate_files
        ports = iter(_free_ports(sum(sizes.values())))
        self.addresses = {role: [f"127.0.0.1:{next(ports)}" for _ in range(size)] for role, size in sizes.items()}
        self._processes: List[TaskProcess] = []

    def config(self, task: Task) -> str:
        """TF_CONFIG of that task."""
        return json.dumps({"cluster": self.addresses, "task": {"type": task.role, "index": task.number}})

    def start(self, task: Task, function: Callable[[Case, Task], None], *, with_config: bool = True) -> None:
        """Run the function in a new process, with the task's TF_CONFIG."""
        stem = self._case.file(f"{task.role}-{task.number}")
        events, stacks, errors = (stem.with_name(f"{stem.name}.{kind}") for kind in ("events", "stacks", "stderr"))
        files = TaskFiles(stacks, errors) if self._separate_files else None
        for path in files or ():
            path.touch()
        sys.stderr.flush()
        parent = os.getpid()
        pid = os.fork()
        if pid:
            self._processes.append(TaskProcess(task, pid, events, files))
            return
        try:
            watch_parent(parent)
            # The case's faulthandler.dump_traceback_later is a thread, which a fork does not copy; to cancel it hangs.
            faulthandler.register(signal.SIGUSR1, write_stacks_to(files.stacks if files else self._stacks))
            if files:
                redirect_output(files.errors)
            if with_config:
                os.environ["TF_CONFIG"] = self.config(task)
            os.environ["no_grpc_proxy"] = "127.0.0.1"  # noqa: SIM112 - gRPC's name; a proxy cannot reach the loopback
            _run_task(self._case, task, stem, function)
        finally:
            os._exit(1)

    def start_all(
        self, tasks: Iterable[Task], function: Callable[[Case, Task], None], *, with_config: bool = True
    ) -> None:
        """Start the tasks. One that has finished stays until all have, because others may still receive its messages.

        Each holds one end of a pipe until it has finished. So the other end is readable when the last one has.
        """
        finished, held = os.pipe()

        def stay(case: Case, task: Task) -> None:
            function(case, task)
            os.close(held)
            select.select([finished], [], [], STAY_S)

        try:
            for task in tasks:
                self.start(task, stay, with_config=with_config)
        finally:
            os.close(finished)
            os.close(held)

    def processes(self) -> Dict[str, int]:
        """Process id of every started task."""
        return {process.task.name: process.pid for process in self._processes}

    def kill(self, task: Task) -> None:
        """Kill one task, like the kernel's out-of-memory killer."""
        for process in self._processes:
            if process.task == task:
                os.kill(process.pid, signal.SIGKILL)

    def steps(self, task: Task) -> int:
        """The number of steps that the task has finished so far."""
        return next((process.facts().get("steps") or 0 for process in self._processes if process.task == task), 0)

    def wait(self, patience_s: float, grace_s: Optional[float] = None) -> List[Facts]:
        """Wait until every task has ended; the others are asked for their stacks and ended.

        Args:
            patience_s: seconds for all of them.
            grace_s: seconds for the others after one has failed; the remaining time if None.

        Returns:
            The facts of each, in the order of their start, by the names of the fields of ``SmokeWorker`` and
            ``SmokeCase``.
        """
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            running = [process for process in self._processes if process.poll()]
            if not running:
                break
            if grace_s is not None and any(process.failed() for process in self._processes):
                end = min(end, time.monotonic() + grace_s)
                grace_s = None
            time.sleep(POLL_S)
        self.end()
        return [process.conclude() for process in self._processes]

    def end(self) -> None:
        """End every running task, with its stacks, its child processes and its shared memory."""
        running = [process for process in self._processes if process.poll()]
        for process in running:
            process.abandon()
            if process.files is None:
                with self._stacks.open("a", encoding="utf-8") as file:
                    file.write(f"{process.task.name}:\n")
            os.kill(process.pid, signal.SIGUSR1)
            time.sleep(STACKS_S)  # in sequence, because they may write to the same file
        trees = [ProcessTree(process.pid, self._earlier) for process in running]
        for process in running:
            process.end()
        for tree in trees:
            tree.end()
        for tree in trees:
            tree.remove()


def in_a_process(case: Case, task: Task, function: Callable[[Case], None], patience_s: float) -> Facts:
    """Run a function in a separate process, which is ended and leaves its stacks after a time; returns its facts.

    Args:
        case: the case; its process must not have used a device.
        task: names the process and its files.
        function: takes the process's case, to which it reports.
        patience_s: seconds.
    """
    cluster = Cluster(case, separate_files=True)
    try:
        cluster.start(task, lambda task_case, _: function(task_case), with_config=False)
        (facts,) = cluster.wait(patience_s)
        return facts
    finally:
        cluster.end()


_WORKER_FIELDS = (
    "name", "outcome", "phase", "finished", "steps", "error_type", "error_message", "exit_code", "signal", "losses",
    "weight_deviation", "seconds",
)  # fmt: skip
_OF_THE_WORKER_ONLY = ("name", "seconds", "outcome", "error_type", "error_message", "exit_code", "signal", "phase")


def note_workers(case: Case, ended: Sequence[Facts]) -> None:
    """Note the outcome of each worker, and the other facts of the first one as the case's."""
    case.note(workers=[{name: facts[name] for name in _WORKER_FIELDS if name in facts} for facts in ended])
    case.note(**{name: value for name, value in ended[0].items() if name not in _OF_THE_WORKER_ONLY})
    if ended[0].get("phase"):
        case.phase(ended[0]["phase"], finished=False)


class WorkerFailed(Exception):  # noqa: N818 - an event
    """A process of the cluster did not finish."""


def expect_all_trained(ended: Sequence[Facts]) -> None:
    """Do nothing if every process finished.

    Raises:
        WorkerFailed: one did not. The message is about the first that raised or died; if there is none, about all
            that were ended while they waited.
    """
    failed = [facts for facts in ended if facts["outcome"] != "trained"]
    failed.sort(key=lambda facts: ("raised", "died", "timed-out", "skipped").index(facts["outcome"]))
    if not failed:
        return
    first = failed[0]
    if first["outcome"] == "raised":
        place = where(dict(first, finished=None))
        there = f" {place}" if place else ""
        raise WorkerFailed(f"{first['name']}: {first['error_type']}{there}: {first['error_message']}")
    if first["outcome"] == "died":
        by = first["signal"] or f"status {first['exit_code']}"
        raise WorkerFailed(f"{first['name']} ended by {by} {where(first)}".rstrip())
    waiting = ", ".join(f"{facts['name']} {where(facts) or 'at its start'}" for facts in failed)
    raise WorkerFailed(f"never finished and had to be ended: {waiting}")


def _run_task(case: Case, task: Task, stem: Path, function: Callable[[Case, Task], None]) -> None:
    with stem.with_name(f"{stem.name}.events").open("a", encoding="utf-8") as events:
        task_case = Case(events, case.devices_kind, case.replicas, stem=stem, deadline_s=case.deadline_s)
        try:
            function(task_case, task)
            task_case.write({"end": {"outcome": "trained"}})
        except NotHere as reason:
            task_case.write({"end": {"outcome": "skipped", "error_message": str(reason)}})
        except BaseException as error:
            traceback.print_exc()
            task_case.write({"end": describe_error(error)})
    sys.stderr.flush()
    os._exit(0)


def _free_ports(count: int) -> List[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
