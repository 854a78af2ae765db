"""Records the steps of a training in constant memory. The hooks of each step cost microseconds."""

from __future__ import annotations

import math
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from kdoctor.facts.watch import NotFinite, Stall, WatchedSteps

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
        self.started = time.perf_counter()
        self.step = -1
        """The newest step that began, counted from 0."""
        self.steps_read = 0
        self.log_names: dict[str, None] = {}
        self.bad: dict[tuple[str, str], NotFinite] = {}
        """The first NaN or infinity by kind and name."""
        self.stalls: dict[int, Stall] = {}
        self._stall_s = stall_s
        self._window_s = window_s
        self._began: float | None = None
        self._first = 0
        """The first step of the block that began last."""
        self._ended: tuple[float, int] | None = None
        """When the newest step reported numbers, and its number. What other callbacks do at the end of an epoch comes
        later."""
        self._thread = threading.get_ident()
        self._skip = SKIPPED_STEPS
        self._timed = 0
        self._baseline: list[float] = []
        self._baseline_s = 0.0
        self._recent: deque[float] = deque(maxlen=_MOST_STEPS)
        self._slowest: tuple[float, int] | None = None
        self._pending: list[tuple[int, dict[str, Any]]] = []
        self._median: float | None = None

    def goes_on(self, step: int) -> bool:
        """Whether a step that begins now belongs to the same block of short steps as the step before."""
        if self._began is None or time.perf_counter() - self._began >= BLOCK_S:
            return False
        self.step, self._ended = step, None
        return True

    def end(self, upcoming: int | None = None) -> None:
        """The current block of steps, if any, has ended. What follows may be validation, or the end of an epoch.

        Keras may run several steps at once: they end before step ``upcoming``.
        """
        if self._began is not None:
            ended, last = time.perf_counter(), self.step
            if upcoming is not None:
                last = upcoming - 1
            elif self._ended is not None:
                ended, last = self._ended
            self._add(ended - self._began, max(1, last - self._first + 1))
        self._began = None

    def begin(self, step: int) -> None:
        """A step begins, and a block with it."""
        self._thread, self.step, self._first, self._ended = threading.get_ident(), step, step, None
        self._began = time.perf_counter()

    def cancel(self) -> None:
        """The current step did not take place."""
        if self._began is not None:
            self._began, self.step = None, self.step - 1

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
        began = self._began
        if began is not None and self._ended is None and time.perf_counter() - began > self.stall_after_s:
            self._stall(time.perf_counter() - began, ended=False)

    def _stall(self, seconds: float, *, ended: bool) -> None:
        known = self.stalls.get(self.step)
        if known or len(self.stalls) < _MOST_STALLS:
            where = known.where if known else "" if ended else _innermost(self._thread)
            self.stalls[self.step] = Stall(step=self.step, seconds=seconds, ended=ended, where=where)

    def take_logs(self, step: int, logs: Mapping[str, Any] | None) -> None:
        """The values that a step reports. Tensors are read later, together."""
        later: dict[str, Any] = {}
        for name, value in (logs or {}).items():
            if isinstance(value, (float, int)):
                self.note(name, step, finite=math.isfinite(value))
            else:
                later[name] = value
        if later:
            self._pending.append((step, later))
        elif logs:
            self.steps_read += 1
            if step >= self.step:
                self._ended = (time.perf_counter(), step)

    def pending(self) -> Iterator[tuple[str, list[int], list[Any]]]:
        """The tensors that were not read yet: name, steps and values. They are forgotten."""
        taken, self._pending = self._pending, []
        self.steps_read += len(taken)
        for name in dict.fromkeys(name for _, logs in taken for name in logs):
            found = [(step, logs[name]) for step, logs in taken if name in logs]
            yield name, [step for step, _ in found], [value for _, value in found]

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
            finite_at = step - 1 if step > 0 else None
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
            steps=self.step + 1,
            timed=self._timed,
            baseline_s=self._median,
            recent_s=median,
            slowest_s=self._slowest[0] if self._slowest else None,
            slowest_at=self._slowest[1] if self._slowest else None,
            stall_after_s=self.stall_after_s,
            stalls=tuple(self.stalls.values()),
        )


def _innermost(thread: int) -> str:
    """The Python line that a thread is at."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - the documented way to see another thread
    if frame is None:
        return ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
