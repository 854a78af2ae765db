"""Samples every GPU from a separate process during the smoke trainings. It never fails a run."""

import contextlib
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast, get_args

from kdoctor.facts.gpus import NvmlState
from kdoctor.facts.sampling import GpuSampling, SampledGpu, SamplingState
from kdoctor.probes.probe import Context
from kdoctor.probes.process.background import BackgroundProcess
from kdoctor.probes.process.launch import own_program_argv
from kdoctor.probes.process.records import RecordError, build
from kdoctor.smoke.gpu_samples import KNOWN, CaseNow, GpuTally

INTERVAL_S = 0.5
PATIENCE_S = 5.0
"""Seconds after which a call that has not returned is reported."""
_GRACE_S = 2.0
"""Seconds that the process has to end. A hanging driver may keep it longer; then it is not waited for."""

_TRAINING = {"train", "trace", "first step", "between steps"}
"""Phases in which the model's variables are on every replica's device (besides ``step <k>``)."""

_LARGEST = 2.0**64
_STATES = frozenset(get_args(NvmlState))


class Sampler:
    """The sampling of one run. It starts on creation, and ends with :meth:`end`."""

    def __init__(
        self, context: Context, *, deadline_s: float, interval_s: float = INTERVAL_S, patience_s: float = PATIENCE_S
    ) -> None:
        self._lock = threading.Lock()
        self._interval_s = interval_s
        self._began = time.monotonic()
        self._ended: float | None = None
        self._gpus: dict[int, GpuTally] = {}
        self._state: SamplingState | None = None
        self._error: str | None = None
        self._at: str | None = None
        self._now: CaseNow | None = None
        self._late = False
        settings = {"deadline_s": deadline_s, "interval_s": interval_s, "patience_s": patience_s}
        self._child = BackgroundProcess(
            context.children,
            own_program_argv("kdoctor.probes.nvml.sampling_child", settings),
            env=context.environ,
            deadline_s=deadline_s,
            on_record=self._take,
        )

    def enter(self, scenario: str, case: str, *, alone: bool) -> None:
        """A case begins; ``alone`` if no other case runs at the same time."""
        with self._lock:
            self._late = True
            self._now = CaseNow(scenario=scenario, case=case, began=time.monotonic()) if alone else None

    def phase(self, name: str) -> None:
        """The case enters a phase."""
        with self._lock:
            if self._now is not None:
                trains = name in _TRAINING or name.startswith("step ")
                since = (self._now.trains_since or time.monotonic()) if trains else None
                self._now = replace(self._now, trains_since=since)

    def leave(self) -> None:
        """The case ended."""
        with self._lock:
            self._now = None

    def end(self) -> None:
        """End the sampling. Returns within seconds, even if the driver hangs."""
        self._child.end(_GRACE_S)
        with self._lock:
            self._ended = time.monotonic()

    def facts(self) -> GpuSampling:
        """The summary so far."""
        with self._lock:
            until = self._ended or time.monotonic()
            return GpuSampling(
                state=self._state or "failed",
                error=self._error or self._why_it_ended(),
                interval_s=self._interval_s,
                seconds=round(until - self._began, 3),
                gpus=tuple(gpu.facts(until) for _, gpu in sorted(self._gpus.items())),
            )

    def _why_it_ended(self) -> str | None:
        """Why the sampling stopped early, or has not begun."""
        ended = self._child.ended
        if self._child.failure is not None:
            return f"sampling failed: {self._child.failure}"
        if ended is not None and not ended.ok:
            return f"the sampling process {ended.describe()}"
        if self._state is None:
            return "NVML did not respond" + (f" in {self._at}" if self._at else "")
        return None

    def _take(self, record: object) -> None:
        """Take one record of :mod:`kdoctor.probes.nvml.sampling_child`."""
        now = time.monotonic()
        with self._lock:
            match record:
                case {"state": str() as state, **rest} if state in _STATES:
                    self._state, error = cast("SamplingState", state), rest.get("error")
                    self._error = error if isinstance(error, str) else None
                case {"gpu": int() as index, **rest}:
                    gpu = self._gpus.setdefault(index, GpuTally(index, self._interval_s, self._began))
                    self._take_gpu(gpu, rest, now)
                case {"at": str() | None as at}:
                    self._at = at
                case _:
                    pass

    def _take_gpu(self, gpu: GpuTally, record: Mapping[Any, Any], now: float) -> None:
        match record:
            case {"once": dict() as once, "errors": dict() as errors}:
                with contextlib.suppress(RecordError):
                    build(SampledGpu, {**once, "index": 0})
                    gpu.know(once)
                gpu.miss(errors)
            case {"hangs": str() as field}:
                gpu.hangs = field
            case {"sample": dict() as sample, "errors": dict() as errors, "took_s": float() as took_s}:
                reading = {name: value for name, value in sample.items() if name in KNOWN and _is_number(value)}
                began = now - took_s if 0 <= took_s <= now - self._began else now
                gpu.add(began, reading, self._now, late=self._late)
                gpu.miss(errors)
            case _:
                pass


def _is_number(value: object) -> bool:
    """Whether it is a number that NVML can report; not a number that is infinite or has hundreds of digits."""
    return isinstance(value, int | float) and abs(value) <= _LARGEST
