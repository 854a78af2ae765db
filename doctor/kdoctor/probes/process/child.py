"""Starts all child processes: each has a deadline, and all of them can be ended at once."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from kdoctor.probes.process.readers import OnRecord, OutputReader, RawReader, RecordReader, TailReader, Take
from kdoctor.records import record

_INFORMATION = re.compile(r"\s*(?:I\d{4} |\d{4}-\d\d-\d\d [\d:.]+: I )")
"""Lines that TensorFlow writes in any run."""
_LAST_WAIT_S = 5.0
"""How long a killed child may take to end."""

Process = subprocess.Popen[bytes]
"""A child process, for modules that must not start one."""


class ChildrenEnded(Exception):  # noqa: N818 - an event, not an error
    """The run was interrupted, or its time is over: no further process is started."""


@record
class ChildEnd:
    """How a child process ended, and its output."""

    exit_code: int | None
    """Exit status, or None if a signal ended it or it could not be killed."""
    signal: str | None
    """Name of the signal that ended it."""
    timed_out: bool
    """Whether it was ended at its deadline."""
    records: tuple[object, ...]
    """The JSON records that it sent."""
    chatter: str
    """The end of its other output on stdout."""
    stderr: str
    """The end of its error output."""
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether it ended with status 0 before its deadline."""
        return self.exit_code == 0 and not self.timed_out

    def describe(self, during: str = "") -> str:
        """How it ended, and during what, with the last line of its error output that is not informational."""
        if self.timed_out:
            what = f"did not finish within {self.seconds:.0f} s and was ended"
        elif self.signal:
            what = f"died of {self.signal}"
        else:
            what = f"exited with status {self.exit_code}"
        what += f" during {during}" if during else ""
        lines = (line for line in reversed(self.stderr.splitlines()) if line.strip() and not _INFORMATION.match(line))
        last = next(lines, "")
        return f"{what} ({last.strip()[:200]})" if last and not self.ok else what


class Children:
    """Starts child processes. One instance is used for a whole run, so that an interruption can end them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ended, self._why = False, "the run was interrupted"
        self._signal: signal.Signals | None = None
        """What a child gets that is started while all are asked to end; None kills it."""

    def run(  # noqa: PLR0913 - the parameters of a child
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        deadline_s: float,
        on_record: OnRecord | None = None,
        on_start: Callable[[subprocess.Popen[bytes]], None] | None = None,
        keep_records: bool = True,
        cwd: str | None = None,
        first_record_s: float | None = None,
        take: Take | None = None,
        grace_s: float = 0.0,
    ) -> ChildEnd:
        """Run a program to its end or its deadline, and end everything in its process group.

        ``on_record`` gets each record, in another thread. Without ``keep_records`` the result has no records, for a
        child that sends them for hours. A child that has sent no record after ``first_record_s`` seconds is ended, too:
        its interpreter hangs at its start. With ``take``, stdout has no records: each piece of it is given to ``take``,
        in another thread. At its deadline, a child gets SIGTERM and ``grace_s`` seconds before it is killed. Its stdin
        stays open and silent as long as this process lives, so a child that waits for its end notices our death.

        A grandchild that left the process group may outlive the call. A child that sleeps in the kernel and cannot be
        killed (because of a hanging GPU driver) is abandoned after a few seconds.

        Raises:
            ChildrenEnded: :meth:`end_all` was called, before or during the run.
            OSError: the program could not be started.
            ValueError: an argument contains a NUL character.
            RuntimeError: the system refuses to start a thread.
            TooManyRecordsError: the child sent more than kdoctor keeps, and was ended.
            Exception: any exception of ``on_record``, after the child was read to its end.
        """
        started = time.monotonic()
        process = self._start(argv, env, cwd)
        output: OutputReader = (
            RawReader(process.stdout, take, lambda: self._end_soon(process, grace_s))
            if take
            else RecordReader(process.stdout, on_record, keep=keep_records)
        )
        errors = TailReader(process.stderr)
        timed_out = False
        try:
            output.start()
            errors.start()
            if on_start:
                on_start(process)
            _wait(process, output, deadline_s, first_record_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            _ask_to_end(process, grace_s)
        finally:
            # Processes in this set may be killed by id, so a process leaves it before its id can be reused.
            with self._lock:
                self._running.discard(process)
            _end(process)
            output.join()
            errors.join()
            if process.stdin:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        if self._ended:
            raise ChildrenEnded(self._why)
        if output.error:
            raise output.error
        code: int | None = process.returncode
        ended_by_signal = code is not None and code < 0
        return ChildEnd(
            exit_code=None if ended_by_signal else code,
            signal=_signal_name(-code) if code is not None and ended_by_signal and not timed_out else None,
            timed_out=timed_out,
            records=tuple(output.records),
            chatter=output.chatter,
            stderr=errors.text,
            seconds=time.monotonic() - started,
        )

    def _start(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> subprocess.Popen[bytes]:
        if self._ended:
            raise ChildrenEnded(self._why)
        process = subprocess.Popen(  # noqa: S603 - argv is a list built by kdoctor, no shell
            list(argv),
            env=without_working_folder(env),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        with self._lock:
            self._running.add(process)
        if self._was_ended():  # the set may have been read just before this child was added
            _kill(process, self._signal)
        return process

    def _was_ended(self) -> bool:
        return self._ended

    def _end_soon(self, process: subprocess.Popen[bytes], grace_s: float) -> None:
        if grace_s <= 0:
            self.end(process)
            return
        with self._lock:
            if process in self._running:
                _kill(process, signal.SIGTERM)
        timer = threading.Timer(grace_s, self.end, (process,))
        timer.daemon = True
        timer.start()

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """End one child, unless it has already ended: its id may be in use again."""
        with self._lock:
            if process in self._running:
                _kill(process)

    def ask_all_to_end(self) -> None:
        """Send SIGTERM to every running child and start no further ones. Call ``end_all`` later."""
        self._signal = signal.SIGTERM
        self._ended = True
        for process in tuple(self._running):
            _kill(process, signal.SIGTERM)

    def end_all(self, why: str = "") -> None:
        """End every running child and start no further ones. Safe to call from a signal handler.

        It takes no lock, because the handler may have interrupted the code that holds it.
        """
        self._signal, self._why = None, why or self._why
        self._ended = True
        for process in tuple(self._running):
            _kill(process)


def without_working_folder(env: Mapping[str, str]) -> dict[str, str]:
    """The variables without empty entries of ``PYTHONPATH``, through which Python imports from the working directory.

    They come from ``PYTHONPATH=$PYTHONPATH:folder`` where it was not set. An entry ``.`` is meant, and stays.
    """
    kept = dict(env)
    entries = kept.get("PYTHONPATH", "").split(os.pathsep)
    if len(entries) > 1:
        kept["PYTHONPATH"] = os.pathsep.join(filter(None, entries))
    return kept


def _wait(process: subprocess.Popen[bytes], output: OutputReader, deadline_s: float, first_s: float | None) -> None:
    """Wait for the end of a process.

    Raises:
        subprocess.TimeoutExpired: it did not end, or did not send its first record.
    """
    if first_s is not None and first_s < deadline_s:
        try:
            process.wait(timeout=first_s)
        except subprocess.TimeoutExpired:
            if not output.count:
                raise
        else:
            return
        deadline_s -= first_s
    process.wait(timeout=deadline_s)


def _kill(process: subprocess.Popen[bytes], number: signal.Signals | None = None) -> None:
    """Kill the process and its group (on Windows: the process only), or send them another signal."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number or signal.SIGKILL)
        else:
            process.kill()


def _ask_to_end(process: subprocess.Popen[bytes], grace_s: float) -> None:
    if grace_s > 0:
        _kill(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=grace_s)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its group, and wait briefly for its end."""
    _kill(process)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_LAST_WAIT_S)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
