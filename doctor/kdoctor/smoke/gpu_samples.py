"""Summarizes GPU samples as they arrive; memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kdoctor.facts.sampling import CaseUse, EventTime, GpuSeries, GpuUse, SampledGpu, Spread
from kdoctor.records import record

AVERAGED_S = 1.0
"""Time before a sample over which the driver averages utilization (nvmlDeviceGetUtilizationRates)."""

MOST_POINTS = 120
"""Maximum length of the series for plots. When it is full, neighbouring points are joined."""

_PLOTTED = ("utilization_gpu_percent", "memory_used_bytes", "temperature_c", "power_draw_w", "clock_sm_mhz")
_SPREADS = (*_PLOTTED, "utilization_memory_percent", "temperature_margin_c", "performance_state", "processes")
_RATES = {"pcie_sent_bytes": "pcie_sent_bytes_s", "pcie_received_bytes": "pcie_received_bytes_s"}
"""Counter to its rate."""
_MAX_INTERVALS = 2.0
"""A sample counts for at most this many intervals, because nothing was seen while a call hung."""

Reading = Mapping[str, float]


@record
class CaseNow:
    """The running case, in seconds of the caller's clock."""

    scenario: str
    case: str
    began: float
    trains_since: float | None = None
    """When its training steps began; None before and after them."""


class _Tally:
    """Minimum, mean and maximum of numbers."""

    def __init__(self) -> None:
        self._count, self._total = 0, 0.0
        self._low, self._high = float("inf"), float("-inf")

    def add(self, value: float) -> None:
        self._count += 1
        self._total += value
        self._low, self._high = min(self._low, value), max(self._high, value)

    @property
    def mean(self) -> float | None:
        return self._total / self._count if self._count else None

    def join(self, other: _Tally) -> None:
        """Add the numbers of another tally."""
        self._count += other._count
        self._total += other._total
        self._low, self._high = min(self._low, other._low), max(self._high, other._high)

    def spread(self) -> Spread | None:
        if not self._count:
            return None
        return Spread(low=float(self._low), mean=round(self._total / self._count, 3), high=float(self._high))


class _Events:
    """Clock event reasons by bit."""

    def __init__(self) -> None:
        self._times: dict[int, EventTime] = {}
        self._in_a_row: dict[int, int] = {}

    def add(self, mask: int, seconds: float) -> None:
        bits = [1 << place for place in range(mask.bit_length()) if mask >> place & 1]
        self._in_a_row = {bit: self._in_a_row.get(bit, 0) + 1 for bit in bits}
        for bit, in_a_row in self._in_a_row.items():
            time = self._times.get(bit, EventTime(bit=bit, seconds=0.0, samples=0, in_a_row=0))
            self._times[bit] = EventTime(
                bit=bit, seconds=time.seconds + seconds, samples=time.samples + 1, in_a_row=max(time.in_a_row, in_a_row)
            )

    def times(self) -> tuple[EventTime, ...]:
        return tuple(replace(time, seconds=round(time.seconds, 3)) for _, time in sorted(self._times.items()))


class _UseTally:
    """Readings over a period."""

    def __init__(self) -> None:
        self._samples = 0
        self._tallies: dict[str, _Tally] = {}
        self._events = _Events()

    def add(self, reading: Reading, seconds: float) -> None:
        self._samples += 1
        for name, value in reading.items():
            if name == "clock_event_reasons":
                self._events.add(int(value), seconds)
            else:
                self._tallies.setdefault(name, _Tally()).add(value)

    def use(self) -> GpuUse:
        spreads: dict[str, Any] = {name: tally.spread() for name, tally in self._tallies.items()}
        return GpuUse(samples=self._samples, events=self._events.times(), **spreads)


class _CaseTally:
    """Readings while one case ran."""

    def __init__(self) -> None:
        self._training_samples = 0
        self._tally = _UseTally()

    def add(self, reading: Reading, seconds: float, began: float, now: CaseNow) -> None:
        self._training_samples += now.trains_since is not None and began >= now.trains_since
        fields = {"memory_used_bytes", "processes", "clock_event_reasons"}
        if began >= now.began + AVERAGED_S:
            fields.add("utilization_gpu_percent")
        self._tally.add({name: value for name, value in reading.items() if name in fields}, seconds)

    def use(self, scenario: str, case: str) -> CaseUse:
        use = self._tally.use()
        return CaseUse(
            scenario=scenario,
            case=case,
            samples=use.samples,
            training_samples=self._training_samples,
            utilization_gpu_percent=use.utilization_gpu_percent,
            memory_used_bytes=use.memory_used_bytes,
            processes=use.processes,
            events=use.events,
        )


class _Series:
    """Readings at equal intervals, at most ``MOST_POINTS``."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._points: list[dict[str, _Tally]] = []

    def add(self, at_s: float, reading: Reading) -> None:
        while at_s >= self._every_s * MOST_POINTS:
            self._halve()
        place = int(at_s / self._every_s)
        self._points += [{} for _ in range(place + 1 - len(self._points))]
        for name in _PLOTTED:
            if name in reading:
                self._points[place].setdefault(name, _Tally()).add(reading[name])

    def _halve(self) -> None:
        self._every_s *= 2
        joined, others = self._points[::2], self._points[1::2]
        for point, other in zip(joined, others, strict=False):
            for name, tally in other.items():
                point.setdefault(name, _Tally()).join(tally)
        self._points = joined

    def series(self) -> GpuSeries | None:
        if not any(self._points):
            return None
        columns: dict[str, Any] = {name: tuple(self._column(name)) for name in _PLOTTED}
        return GpuSeries(every_s=self._every_s, **columns)

    def _column(self, name: str) -> Iterator[float | None]:
        for point in self._points:
            mean = point[name].mean if name in point else None
            yield None if mean is None else round(mean, 2)


class GpuTally:
    """The samples of one GPU over the run."""

    def __init__(self, index: int, interval_s: float, origin: float) -> None:
        """``origin`` is the start of the sampling, by the caller's clock."""
        self._index = index
        self._interval_s = interval_s
        self._origin = origin
        self._once: Mapping[str, Any] = {}
        self._errors: dict[str, str] = {}
        self._before, self._during = _UseTally(), _UseTally()
        self._cases: dict[tuple[str, str], _CaseTally] = {}
        self._series = _Series(interval_s)
        self._last: float | None = None
        self._counters: dict[str, float] = {}
        self._gap_s = 0.0
        self.hangs: str | None = None

    def know(self, once: Mapping[str, Any]) -> None:
        """Take the fields that do not change."""
        self._once = {**self._once, **{name: once[name] for name in ONCE if name in once}}

    def miss(self, errors: Mapping[str, str]) -> None:
        """Take the fields that could not be read, with their errors."""
        self._errors.update((name, str(error)) for name, error in errors.items())

    def add(self, began: float, reading: Reading, now: CaseNow | None, *, late: bool) -> None:
        """Take one sample.

        Args:
            began: when reading it began, by the caller's clock.
            reading: the fields that could be read, by the names of ``Gpu``.
            now: the running case, if only one runs.
            late: whether a case has begun.
        """
        gap_s = self._interval_s if self._last is None else began - self._last
        self._gap_s = max(self._gap_s, gap_s)
        duration_s = min(gap_s, _MAX_INTERVALS * self._interval_s)
        self._last, self.hangs = began, None
        states = {name: value for name, value in reading.items() if name not in _RATES}
        rated = {**states, **self._rates(reading, gap_s)}
        (self._during if late else self._before).add(rated, duration_s)
        self._series.add(began - self._origin, rated)
        if now is not None and began >= now.began:
            tally = self._cases.setdefault((now.scenario, now.case), _CaseTally())
            tally.add(rated, duration_s, began, now)

    def _rates(self, reading: Reading, gap_s: float) -> dict[str, float]:
        """How fast the counters grew; empty for a counter that was reset."""
        counted = {name: reading[name] for name in _RATES if name in reading}
        grown = {name: value - self._counters[name] for name, value in counted.items() if name in self._counters}
        self._counters = counted
        return {_RATES[name]: more / gap_s for name, more in grown.items() if more >= 0 and gap_s > 0}

    def facts(self, until: float) -> SampledGpu:
        """The summary so far. ``until`` is when the sampling ended, or now, by the caller's clock."""
        gap_s = None if self._last is None else max(self._gap_s, until - self._last)
        return SampledGpu(
            index=self._index,
            before=self._before.use(),
            during=self._during.use(),
            cases=tuple(tally.use(*name) for name, tally in self._cases.items()),
            series=self._series.series(),
            longest_gap_s=None if gap_s is None else round(gap_s, 3),
            hangs=self.hangs,
            errors=dict(self._errors),
            **self._once,
        )


ONCE = (
    "name", "uuid", "bus_id", "enforced_power_limit_w", "clock_sm_max_mhz", "temperature_slowdown_c",
    "temperature_slowdown_margin_c",
)  # fmt: skip
"""Fields that do not change during a run."""
KNOWN = frozenset({*_SPREADS, *_RATES, "clock_event_reasons"})
"""Fields of a sample that are summarized."""
