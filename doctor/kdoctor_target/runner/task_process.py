"""One process of a case that trains in several, from its start to its facts."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional

from kdoctor_target.runner.case_files import complaints, tail
from kdoctor_target.runner.outcome import describe_death
from kdoctor_target.runner.phases import progress_of

Facts = Dict[str, Any]

POLL_S = 0.02
_KILL_WAIT_S = 5.0
"""Seconds to wait for a killed process to end. A process that hangs in a driver call never ends and is abandoned."""
_STACKS_LINES = 60


class Task(NamedTuple):
    """One process of a cluster, by the names of TF_CONFIG."""

    role: str
    number: int

    @property
    def name(self) -> str:
        """Role and number."""
        return f"{self.role} {self.number}"


class TaskFiles(NamedTuple):
    """Files of one process, used instead of the case's."""

    stacks: Path
    errors: Path

    def facts(self) -> Facts:
        """Quotes from the files, by the names of ``SmokePair``'s fields."""
        return {
            "stacks": tail(self.stacks, _STACKS_LINES) or None,
            "stderr_tail": tail(self.errors) or None,
            "log_lines": complaints(self.errors),
        }


class TaskProcess:
    """The process of one task."""

    def __init__(self, task: Task, pid: int, events: Path, files: Optional[TaskFiles] = None) -> None:
        self.task = task
        self.pid = pid
        self.files = files
        self._events = events
        self._status: Optional[int] = None
        self._abandoned = False
        self._started = time.monotonic()
        self._seconds = 0.0

    def poll(self) -> bool:
        """Whether the process is still running."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._take(status)
        return self._status is None

    def abandon(self) -> None:
        """Count the process as timed out, even if the signal that requests its stacks makes it continue."""
        self._abandoned = True

    def end(self) -> None:
        """Kill the process, and wait for its end for a few seconds."""
        if not self.poll():
            return
        os.kill(self.pid, signal.SIGKILL)
        give_up_at = time.monotonic() + _KILL_WAIT_S
        while self.poll() and time.monotonic() < give_up_at:
            time.sleep(POLL_S)
        if self._status is None:
            self._take(int(signal.SIGKILL))

    def _take(self, status: int) -> None:
        self._status = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        self._seconds = time.monotonic() - self._started

    def facts(self) -> Facts:
        """The facts that the process has reported so far."""
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

    def failed(self) -> bool:
        """Whether the process has ended without finishing its training."""
        return self._status is not None and self.facts().get("outcome") != "trained"

    def conclude(self) -> Facts:
        """The outcome of the ended process, with everything that it reported."""
        facts = dict(self.facts(), name=self.task.name, seconds=self._seconds)
        if self._abandoned:
            facts["outcome"] = "timed-out"
        elif "outcome" not in facts:
            facts.update(describe_death(self._status or 0))
        if self.files and facts["outcome"] != "trained":
            facts.update(self.files.facts())
        return facts
