"""Records the steps of a training in constant memory. The hooks of each step cost microseconds."""

import math
import statistics
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any, Literal

from kdoctor_watch.facts import NotFinite, Stall, WatchedSteps

SKIPPED_STEPS = 5
"""Steps at the beginning that trace, compile and fill buffers."""
BLOCK_S = 0.05
"""Shorter steps are timed together, since a clock and a list for each of them would cost a share of it."""
WINDOW_STEPS = 100
"""The least number of steps whose median is compared. A block of short steps counts once."""
WINDOW_S = 10.0
"""The least time of these steps: a load of a second does not count."""
_MOST_STEPS = 10_000
_MOST_STALLS = 20
_STALL_FACTOR = 20.0
"""A stall takes at least this many times as long as the median step."""
_FIRST_FACTOR = 10.0
"""The first step of a run traces and compiles, so that it may take this many times as long as any other stall."""


class Recorder:
    """The steps of one run. Hooks may be called from another thread than the one that trains."""

    def __init__(self, stall_s: float, window_s: float = WINDOW_S) -> None:
        self.started = perf_counter()
        self.step = -1
        """The newest step that began, counted from 0."""
        self.newest_reported = -1
        """The newest step that ended and whose report was read."""
        self.steps_read = 0
        self.log_names: dict[str, None] = {}
        self.bad: dict[tuple[str, str], NotFinite] = {}
        """The first NaN or infinity by kind and name."""
        self.stalls: dict[int, Stall] = {}
        self._stall_s = stall_s
        self._window_s = window_s
        self._began: float | None = None
        self._block_until = -math.inf
        self._due: float = -math.inf
        self._first = 0
        """The first step of the block that began last."""
        self._reports: deque[tuple[int, float, Mapping[str, Any] | None]] = deque()
        """What the steps reported, and when. It is read at the end of a block."""
        self._reported: tuple[float, int] | None = None
        """When the newest step that reported numbers did so, and its number."""
        self._thread = threading.get_ident()
        self._skip = SKIPPED_STEPS
        self._timed = 0
        self._baseline: list[float] = []
        self._baseline_s = 0.0
        self._recent: deque[float] = deque(maxlen=_MOST_STEPS)
        self._slowest: tuple[float, int] | None = None
        self._pending: list[tuple[int, dict[str, Any]]] = []
        self._valued = -1
        """The newest step that reported values."""
        self._before: dict[int, int] = {}
        """For the steps in ``_pending``, the step that reported before. Keras may run several at once."""
        self._median: float | None = None

    def goes_on(self, step: int) -> bool:
        """Whether a step that begins now belongs to the same block of short steps as the step before."""
        if step >= self._due or perf_counter() >= self._block_until:
            return False
        self.step = step
        return True

    def end_block_soon(self) -> None:
        """The step that comes next begins a block."""
        self._due = -math.inf

    def end(self, upcoming: int | None = None) -> None:
        """The current block of steps, if any, has ended. What follows may be validation, or the end of an epoch.

        Keras may run several steps at once: they end before step ``upcoming``.
        """
        now = perf_counter()
        self.read_reports()
        if self._began is not None:
            ended, last = now, self.step
            if upcoming is not None:
                last = upcoming - 1
            elif self._ended is not None:
                ended, last = self._ended
            self._add(ended - self._began, max(1, last - self._first + 1))
        if upcoming is None and 0 <= self.newest_reported < self.step:
            self.step = self.newest_reported  # Keras begins a step before it sees that the data is at its end
        self._began, self._block_until = None, -math.inf

    def begin(self, step: int, due: float = math.inf) -> None:
        """A step begins, and a block with it. The block ends before step ``due``, at the latest."""
        self._thread, self.step, self._first, self._reported = threading.get_ident(), step, step, None
        self._began = perf_counter()
        self._block_until, self._due = self._began + BLOCK_S, due

    @property
    def _ended(self) -> tuple[float, int] | None:
        """When the newest step ended, and its number. What other callbacks do at the end of an epoch comes later."""
        return self._reported if self._reported is not None and self._reported[1] >= self.step else None

    def cancel(self) -> None:
        """The current step did not take place."""
        if self._began is not None:
            self._began, self.step = None, self.step - 1
            self._block_until = -math.inf

    def _add(self, seconds: float, steps: int) -> None:
        if seconds > self.stall_after_s:
            self._stall(seconds, ended=True)
        if self._skip:
            self._skip -= 1
            return
        self._timed += steps
        if self._median is None:
            self._baseline.append(seconds / steps)
            self._baseline_s += seconds
            if self._is_window(len(self._baseline), self._baseline_s):
                self._median = statistics.median(self._baseline)
        else:
            self._recent.append(seconds / steps)

    def _is_window(self, steps: int, seconds: float) -> bool:
        return steps >= WINDOW_STEPS and (seconds >= self._window_s or steps >= _MOST_STEPS)

    def _newest(self) -> list[float]:
        """The newest steps that are enough to compare; empty if there are too few."""
        taken: list[float] = []
        total = 0.0
        for seconds in reversed(list(self._recent)):
            taken.append(seconds)
            total += seconds
            if self._is_window(len(taken), total):
                return taken
        return []

    @property
    def step_s(self) -> float | None:
        """Median seconds of the newest steps, or of the first ones."""
        times = list(self._recent)[-WINDOW_STEPS:] or self._baseline[-WINDOW_STEPS:]
        return statistics.median(times) if times else None

    @property
    def stall_after_s(self) -> float:
        """Seconds after which the current step counts as a stall."""
        usual = self._median if self._median is not None else self._baseline[0] if self._baseline else 0.0
        least = max(self._stall_s, _STALL_FACTOR * usual)
        return least * _FIRST_FACTOR if self._skip == SKIPPED_STEPS else least

    def look_for_stall(self) -> None:
        """Record the current step if it takes too long. Called from another thread than the one that trains."""
        self.read_reports()
        began = self._began
        if began is not None and self._ended is None and perf_counter() - began > self.stall_after_s:
            self._stall(perf_counter() - began, ended=False)

    def _stall(self, seconds: float, *, ended: bool) -> None:
        known = self.stalls.get(self.step)
        if known or len(self.stalls) < _MOST_STALLS:
            where = known.where if known else "" if ended else _innermost(self._thread)
            self.stalls[self.step] = Stall(step=self.step, seconds=seconds, ended=ended, where=where)

    def report(self, step: int, logs: Mapping[str, Any] | None) -> None:
        """A step has ended, and reports these values. They are read later, those of a block together."""
        self._reports.append((step, perf_counter(), logs))

    def read_reports(self) -> None:
        """Read what the steps reported since the last time. Any thread may call this."""
        while self._reports:
            try:
                step, ended, logs = self._reports.popleft()
            except IndexError:  # another thread took it
                return
            self.newest_reported = max(self.newest_reported, int(step))
            self._take_logs(int(step), ended, logs or {})

    def _take_logs(self, step: int, ended: float, logs: Mapping[str, Any]) -> None:
        """The values that a step reports. Tensors are read later still, with one transfer."""
        if not logs:
            return
        later: dict[str, Any] = {}
        before = self._valued if self._valued < step else step - 1  # Keras may call this in another order
        self._valued = max(self._valued, step)
        for name, value in logs.items():
            if isinstance(value, (float, int)):
                if not math.isfinite(value) or name not in self.log_names:
                    self.note(name, step, finite=math.isfinite(value), finite_at=before)
            else:
                later[name] = value
        if later:
            self._before[step] = before
            self._pending.append((step, later))
        else:
            self.steps_read += 1
            if self._reported is None or step >= self._reported[1]:
                self._reported = (ended, step)

    def pending(self) -> Iterator[tuple[str, list[int], list[Any]]]:
        """The tensors that were not read yet: name, steps and values. They are forgotten."""
        taken, self._pending = self._pending, []
        for name in dict.fromkeys(name for _, logs in taken for name in logs):
            found = [(step, logs[name]) for step, logs in taken if name in logs]
            yield name, [step for step, _ in found], [value for _, value in found]
        for step, _ in taken:
            self._before.pop(step, None)

    def note(  # noqa: PLR0913 - the fields of NotFinite
        self,
        name: str,
        step: int,
        *,
        finite: bool,
        kind: Literal["log", "gradient", "variable"] = "log",
        finite_at: int | None = None,
        replica: int | None = None,
    ) -> None:
        """Whether a value was finite after a step. ``finite_at`` is the last step after which it was."""
        if kind == "log":
            self.log_names[name] = None
            finite_at = self._before.get(step, finite_at)
            finite_at = None if finite_at == -1 else finite_at
        known = self.bad.get((kind, name))
        if not finite and (known is None or step < known.step):
            self.bad[kind, name] = NotFinite(kind=kind, name=name, step=step, finite_at=finite_at, replica=replica)

    def facts(self) -> WatchedSteps:
        """The steps so far."""
        newest = self._newest()
        median = statistics.median(newest) if newest else None
        if median is not None and (self._slowest is None or median > self._slowest[0]):
            self._slowest = (median, self.step)
        return WatchedSteps(
            steps=int(self.step) + 1,
            timed=self._timed,
            baseline_s=self._median,
            recent_s=median,
            slowest_s=self._slowest[0] if self._slowest else None,
            slowest_at=self._slowest[1] if self._slowest else None,
            stall_after_s=self.stall_after_s,
            stalls=tuple(self.stalls.values()),
        )


def _innermost(thread: int) -> str:
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - the documented way to see another thread
    if frame is None:
        return ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
