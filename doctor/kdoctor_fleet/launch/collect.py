"""Asks the nodes, several at a time, and keeps their reports. Nothing that a node sends is executed."""

import contextlib
import datetime as dt
import queue
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile

from kdoctor.errors import UsageError
from kdoctor.records import record
from kdoctor.text.sanitize import clean
from kdoctor_fleet.launch.engine import GRACE_S, Ended, Engine, InterruptedRunError
from kdoctor_fleet.node_report import MOST_BYTES
from kdoctor_fleet.read import LONGEST_REASON, UnusableError, find_report

_IN_MEMORY = 2**20
_NOT_FOUND = (126, 127)
"""Exit codes of a shell that cannot start a program."""
_BY_SIGNAL = {128 + number: number.name for number in signal.Signals}
"""Exit codes of a shell whose program died of a signal."""
_STEP_S = 0.5

Command = Callable[[str, float], Sequence[str]]
"""The command for a node, from its name and its limit in seconds."""


@record
class Limits:
    """How many nodes at once, and for how long."""

    fan_out: int
    node_s: float
    """For each node."""
    total_s: float | None
    """For all nodes; None if only the nodes have a limit."""


@record
class Answer:
    """What came of asking a node."""

    node: str
    verdict: str
    """Of its report; empty if it sent none."""
    reason: str
    """Why it sent no report; empty if it did."""
    asked_at: str
    """When its report was asked for: UTC, ISO 8601."""
    seconds: float


@dataclass
class Collection:
    """One run over the nodes."""

    engine: Engine
    command: Command
    limits: Limits
    keep: Callable[[str, bytes], None]
    """Stores the report of a node. It may raise ``UsageError``."""
    running: dict[str, None] = field(default_factory=dict, init=False)
    """The nodes that are being asked, the longest first."""
    _stopped: threading.Event = field(default_factory=threading.Event, init=False)
    _answers: queue.SimpleQueue[Answer] = field(default_factory=queue.SimpleQueue, init=False)
    _ends_at: float | None = field(default=None, init=False)

    def run(self, nodes: Sequence[str]) -> Generator[Answer | None, None, None]:
        """The answers as they come, and None about twice a second. Closing the iterator early ends everything."""
        if self.limits.total_s is not None:
            self._ends_at = time.monotonic() + self.limits.total_s
        open_ = len(nodes)
        with ThreadPoolExecutor(self.limits.fan_out, thread_name_prefix="kdoctor-node") as pool:
            try:
                for node in nodes:
                    pool.submit(self._ask, node)
                while open_:
                    with contextlib.suppress(queue.Empty):
                        yield self._answers.get(timeout=_STEP_S)
                        open_ -= 1
                        continue
                    yield None
            finally:
                if open_:  # else the engine is still of use
                    self._stop(pool)

    def _stop(self, pool: ThreadPoolExecutor) -> None:
        """Nothing is started any more; what runs may end its remote part, and is killed after a grace."""
        self._stopped.set()
        self.engine.interrupt()
        pool.shutdown(wait=False, cancel_futures=True)
        ends_at = time.monotonic() + GRACE_S
        while self.running and time.monotonic() < ends_at:
            time.sleep(0.05)
        self.engine.end()

    def _ask(self, node: str) -> None:
        begun, asked_at = time.monotonic(), dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")
        left = self.limits.node_s if self._ends_at is None else min(self.limits.node_s, self._ends_at - begun)
        try:
            if self._stopped.is_set():
                return
            if left <= 0:
                verdict = earlier = ""
                reason = f"not started within the {self.limits.total_s:.0f} s of the whole run (--timeout)"
            else:
                self.running[node] = None
                verdict, reason, earlier = self._answer(node, left)
            asked_at = earlier or asked_at
        except InterruptedRunError:
            return
        except Exception as error:  # noqa: BLE001 - the other nodes are asked in spite of it
            verdict, reason = "", f"{type(error).__name__}: {error}"
        finally:
            self.running.pop(node, None)
        shown = clean(" ".join(reason.split()))[:LONGEST_REASON]
        self._answers.put(
            Answer(node=node, verdict=verdict, reason=shown, asked_at=asked_at, seconds=time.monotonic() - begun)
        )

    def _answer(self, node: str, deadline_s: float) -> tuple[str, str, str]:
        """The verdict of its report or why it sent none, and when it was asked for if that was earlier."""
        with contextlib.closing(_Output()) as output:
            ended = self.engine.run(node, self.command(node, deadline_s), output.take, deadline_s)
            if output.problem:
                return "", output.problem, ""
            try:
                sent, content = find_report(output.read())
            except UnusableError as error:
                return "", _why(ended, str(error) if output.size else "", deadline_s), ""
        try:
            self.keep(node, content)
        except UsageError as error:
            return "", f"its report cannot be kept: {error.message}", ""
        return sent.verdict.value, "", ended.asked_at


class _Output:
    """What a node wrote to stdout: at most as much as a report may have."""

    def __init__(self) -> None:
        self.size = 0
        self.problem = ""
        """Why the node was ended before it had written everything."""
        self._file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by close()

    def close(self) -> None:
        """Forget everything."""
        with contextlib.suppress(OSError):  # what could not be written on a full disk
            self._file.close()

    def take(self, piece: bytes) -> bool:
        """Keep a piece; returns whether there is room for more."""
        self.size += len(piece)
        if self.size > MOST_BYTES:
            self.problem = f"sent more than {MOST_BYTES >> 20} MiB, which is not a report"
            return False
        try:
            self._file.write(piece)
        except OSError as error:
            self.problem = f"its output cannot be kept here: {error.strerror or error}"
            return False
        return True

    def read(self) -> bytes:
        """Everything."""
        self._file.seek(0)
        return self._file.read()


def _why(ended: Ended, unusable: str, deadline_s: float) -> str:
    problem = ended.problem or unusable
    if ended.timed_out:
        said = f": {problem}" if problem else ""
        return f"no report within {deadline_s:.0f} s{said}"
    if ended.exit_code is None:
        return problem or "it did not end"
    if ended.exit_code in _NOT_FOUND:
        return f"kdoctor cannot be started there: {problem}"
    if ended.exit_code in _BY_SIGNAL:
        said = f": {ended.problem}" if ended.problem else ""
        return f"kdoctor was killed there ({_BY_SIGNAL[ended.exit_code]}){said}"
    if ended.exit_code == 0 or (unusable and not ended.problem):
        return unusable or "it wrote no report"
    return f"exit code {ended.exit_code}: {problem or 'no message'}"
