"""The only place that starts processes: each with a deadline, and all of them can be ended at once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

RECORD_START = b"\x1e"
"""A record is this byte, a JSON text and a line feed (RFC 7464). All else on stdout is chatter."""

_TAIL_BYTES = 64 * 1024
_LONGEST_LINE = 32 * 1024 * 1024
_READ_BYTES = 64 * 1024

OnRecord = Callable[[object], None]


class ChildrenEnded(Exception):
    """The run was interrupted, so no further process is started."""


@dataclass(frozen=True, kw_only=True)
class ChildEnd:
    """How a child process ended, and what it said."""

    exit_code: int | None
    """Exit status, or None where a signal ended it."""
    signal: str | None
    """Name of the signal that ended it."""
    timed_out: bool
    """Whether it was ended because its deadline passed."""
    records: tuple[object, ...]
    """The JSON records that it sent."""
    chatter: str
    """The end of what it printed to stdout beside its records."""
    stderr: str
    """The end of its error output."""
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.exit_code == 0 and not self.timed_out

    def describe(self) -> str:
        """How it ended, in a few words, with the last line of its error output."""
        if self.timed_out:
            what = f"did not finish within {self.seconds:.0f} s and was ended"
        elif self.signal:
            what = f"died of {self.signal}"
        else:
            what = f"exited with status {self.exit_code}"
        last = next((line for line in reversed(self.stderr.splitlines()) if line.strip()), "")
        return f"{what} ({last.strip()[:200]})" if last and not self.ok else what


class Children:
    """Starts child processes. One for a whole run, so that an interruption can end them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        deadline_s: float,
        on_record: OnRecord | None = None,
        cwd: str | None = None,
    ) -> ChildEnd:
        """Run a program to its end or to its deadline; then nothing of its process group is left.

        The child's stdin stays open and silent as long as this process lives, so a child that waits
        for its end learns of our death.

        Raises:
            ChildrenEnded: :meth:`end_all` was called, before or during the run.
            OSError: the program could not be started.
        """
        started = time.monotonic()
        process = self._start(argv, env, cwd)
        output, errors = _RecordReader(process.stdout, on_record), _TailReader(process.stderr)
        try:
            timed_out = not _wait(process, deadline_s)
        finally:
            _end(process)
            output.join()
            errors.join()
            with self._lock:
                self._running.discard(process)
            if process.stdin:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        if self._ended:
            raise ChildrenEnded
        code = process.returncode
        return ChildEnd(
            exit_code=code if code >= 0 else None,
            signal=_signal_name(-code) if code < 0 and not timed_out else None,
            timed_out=timed_out,
            records=tuple(output.records),
            chatter=output.chatter,
            stderr=errors.text,
            seconds=time.monotonic() - started,
        )

    def _start(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._ended:
                raise ChildrenEnded
            process = subprocess.Popen(  # noqa: S603 - argv is a list built by kdoctor, no shell
                list(argv),
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._running.add(process)
            return process

    def end_all(self) -> None:
        """End every running child and start no other. Safe to call from a signal handler's thread."""
        self._ended = True
        for process in tuple(self._running):
            _end(process)


def _wait(process: subprocess.Popen[bytes], deadline_s: float) -> bool:
    """Whether the process ended by itself before the deadline."""
    try:
        process.wait(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and whatever it started in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _Reader:
    """Reads a stream to its end in a thread of its own."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of the stream, but not for a stranger who keeps it open."""
        self._thread.join(timeout=2)
        if self._stream and not self._thread.is_alive():
            self._stream.close()

    def _read(self) -> None:
        if self._stream is None:
            return
        descriptor = self._stream.fileno()
        while chunk := os.read(descriptor, _READ_BYTES):
            self._take(chunk)

    def _take(self, chunk: bytes) -> None:
        raise NotImplementedError


class _TailReader(_Reader):
    """Keeps the end of a stream."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self._tail = b""
        super().__init__(stream)

    @property
    def text(self) -> str:
        return self._tail.decode("utf-8", "replace")

    def _take(self, chunk: bytes) -> None:
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]


class _RecordReader(_Reader):
    """Parts a stream into records and chatter."""

    def __init__(self, stream: IO[bytes] | None, on_record: OnRecord | None) -> None:
        self.records: list[object] = []
        self._on_record = on_record
        self._rest = b""
        self._chatter = b""
        super().__init__(stream)

    @property
    def chatter(self) -> str:
        return (self._chatter + self._rest)[-_TAIL_BYTES:].decode("utf-8", "replace")

    def _take(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._take_line(line)
        if len(self._rest) > _LONGEST_LINE:
            self._rest = self._rest[-_TAIL_BYTES:]

    def _take_line(self, line: bytes) -> None:
        before, start, text = line.partition(RECORD_START)
        try:
            record = json.loads(text) if start else None
        except ValueError:
            record = None
        if record is None:
            self._chatter = (self._chatter + line + b"\n")[-_TAIL_BYTES:]
            return
        self._chatter = (self._chatter + before)[-_TAIL_BYTES:]
        self.records.append(record)
        if self._on_record:
            self._on_record(record)
