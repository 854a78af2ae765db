"""One process of a case that trains in several: from its start to its facts."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional

from kdoctor_target.runner.case_files import complaints, tail
from kdoctor_target.runner.phases import progress_of

Facts = Dict[str, Any]

POLL_S = 0.02
_MERCY_S = 5.0
"""Seconds until a killed process must be gone. One that hangs in a driver's call never goes, and is left to Linux."""
_STACKS_LINES = 60


class Task(NamedTuple):
    """One process of a cluster, by the names of TF_CONFIG."""

    role: str
    number: int

    @property
    def name(self) -> str:
        """Role and number."""
        return "{} {}".format(self.role, self.number)


class OwnFiles(NamedTuple):
    """Where a process writes what others write beside the case's."""

    stacks: Path
    errors: Path

    def facts(self) -> Facts:
        """What is quoted from them, by the names of ``SmokePair``'s fields."""
        return {
            "stacks": tail(self.stacks, _STACKS_LINES) or None,
            "stderr_tail": tail(self.errors) or None,
            "log_lines": complaints(self.errors),
        }


class TaskProcess:
    """One task from its start to its facts."""

    def __init__(self, task: Task, pid: int, stem: Path, own: Optional[OwnFiles] = None) -> None:
        self.task = task
        self.pid = pid
        self.own = own
        self._events = stem.with_name(stem.name + ".events")
        self._status: Optional[int] = None
        self._given_up = False
        self._started = time.monotonic()
        self._seconds = 0.0

    def poll(self) -> bool:
        """Whether it still runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._take(status)
        return self._status is None

    def give_up(self) -> None:
        """Take it as one that waits, even if the signal that asks for its stacks is what wakes it."""
        self._given_up = True

    def end(self) -> None:
        """End it, and wait until it is gone or is seen not to go."""
        if not self.poll():
            return
        os.kill(self.pid, signal.SIGKILL)
        patience = time.monotonic() + _MERCY_S
        while self.poll() and time.monotonic() < patience:
            time.sleep(POLL_S)
        if self._status is None:
            self._take(int(signal.SIGKILL))

    def _take(self, status: int) -> None:
        self._status = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        self._seconds = time.monotonic() - self._started

    def facts(self) -> Facts:
        """What it has said by now."""
        facts: Facts = {}
        if not self._events.exists():
            return facts
        for line in self._events.read_text(encoding="utf-8").splitlines():
            try:
                event = json.loads(line)
            except ValueError:  # the line is being written
                continue
            facts.update(event.get("facts", {}))
            facts.update(event.get("end", {}))
            facts.update(progress_of(event))
        return facts

    def ended_badly(self) -> bool:
        """Whether it has ended, and not by training."""
        return self._status is not None and self.facts().get("outcome") != "trained"

    def conclude(self) -> Facts:
        """How it ended, with everything that it said."""
        facts = dict(self.facts(), name=self.task.name, seconds=self._seconds)
        if self._given_up:
            facts["outcome"] = "timed-out"
        elif "outcome" not in facts:
            status = self._status or 0
            facts["outcome"] = "died"
            facts["exit_code"] = status if status >= 0 else None
            facts["signal"] = signal.Signals(-status).name if status < 0 else None
        if self.own and facts["outcome"] != "trained":
            facts.update(self.own.facts())
        return facts
