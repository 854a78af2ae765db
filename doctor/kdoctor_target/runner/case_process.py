"""The process of a case as seen by the runner, from its start to its facts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import Any, Callable, Dict, Optional, Set

from kdoctor_target.runner.case_files import CaseFiles, complaints, tail
from kdoctor_target.runner.cleanup import ProcessTree
from kdoctor_target.runner.outcome import describe_death, peak_memory
from kdoctor_target.runner.phases import progress_of

Facts = Dict[str, Any]

STACKS_LINES = 150


class CaseProcess:
    """A forked process, or a fresh interpreter."""

    def __init__(self, pid: int, popen: "Optional[subprocess.Popen[bytes]]" = None) -> None:
        self.pid = pid
        self._popen = popen
        self.peak_memory_bytes: Optional[int] = None

    def poll(self) -> Optional[int]:
        """The exit status (negative: the number of the signal), or None while it runs."""
        if self._popen:
            return self._popen.poll()
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        self.peak_memory_bytes = peak_memory(usage)
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def kill(self) -> None:
        """End the process at once."""
        if self._popen:
            self._popen.kill()
        else:
            os.kill(self.pid, signal.SIGKILL)


class RunningCase:
    """One case that is running.

    Args:
        job: the case, as the runner was asked to run it.
        process: its process.
        files: where it writes.
        earlier: what was in /dev/shm before it was started.
        import_s: seconds that its process may need until it has imported. The case's own time, after which it is
            killed, begins then.
    """

    def __init__(
        self, job: Facts, process: CaseProcess, files: CaseFiles, earlier: Set[str], import_s: float = 0.0
    ) -> None:
        self.job = job
        self._earlier = earlier
        self._process = process
        self._files = files
        self._started = time.monotonic()
        self._ends = self._started + import_s + job["deadline_s"]
        self._killed = False
        self._tree: Optional[ProcessTree] = None
        self._events_read = 0
        self._facts: Facts = {}
        self._end: Optional[Facts] = None

    def advance(self, on_phase: Callable[[Facts, Facts], None]) -> Optional[Facts]:
        """Read new events; returns the case's facts once its process has ended.

        Args:
            on_phase: gets the job and the facts so far, with the phase that begins.
        """
        status = self._process.poll()
        self._read_events(on_phase)
        if status is not None:
            return self._conclude(status)
        if not self._killed and time.monotonic() > self._ends:
            self._killed = True
            self._tree = ProcessTree(self._process.pid, self._earlier)
            self._process.kill()
            self._tree.end()
        return None

    @property
    def pid(self) -> int:
        """Id of its process."""
        return self._process.pid

    def _read_events(self, on_phase: Callable[[Facts, Facts], None]) -> None:
        with self._files.events.open("rb") as file:
            file.seek(self._events_read)
            *lines, _incomplete = file.read().split(b"\n")
        for line in lines:
            self._events_read += len(line) + 1
            event = json.loads(line.decode("utf-8"))
            self._facts.update(event.get("facts", {}))
            self._facts.update(progress_of(event))
            if "phase" in event:
                on_phase(self.job, self._facts)
            if event.get("imported"):
                self._ends = time.monotonic() + self.job["deadline_s"]
            self._end = event.get("end", self._end)

    def _conclude(self, status: int) -> Facts:
        if self._tree:
            self._tree.remove()
        facts = dict(self._facts, seconds=time.monotonic() - self._started)
        if self._process.peak_memory_bytes is not None:
            facts["peak_memory_bytes"] = self._process.peak_memory_bytes
        if self._end is not None:
            facts.update(self._end)
        elif self._killed:
            facts["outcome"] = "timed-out"
        else:
            facts.update(describe_death(status))
        facts["stacks"] = tail(self._files.stacks, STACKS_LINES) or None
        if facts["outcome"] not in ("trained", "skipped"):
            facts["stderr_tail"] = tail(self._files.errors) or None
            facts["log_lines"] = complaints(self._files.errors)
        return facts
