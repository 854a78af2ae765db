"""Looks at the machine during a training: in a thread, and through NVML in a child process."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from kdoctor.facts import Facts, GpuSampling, KernelLog, Unavailable
from kdoctor.probes.files import reason
from kdoctor.probes.kernel_log import KernelLogTail
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children
from kdoctor.smoke.gpu_sampler import Sampler
from kdoctor_watch.facts import WatchedMemory

_MOST_PERIODS = 16


class Lows:
    """The smallest value in each of a few equal periods. When there are many, neighbours are joined."""

    def __init__(self, name: str, every_s: float) -> None:
        self._name = name
        self._every_s = every_s
        self._began = time.monotonic()
        self._lows: list[int] = []

    def add(self, value: int) -> None:
        """A value that was read now."""
        while (place := int((time.monotonic() - self._began) / self._every_s)) >= _MOST_PERIODS:
            self._every_s *= 2
            self._lows = [min(self._lows[first : first + 2]) for first in range(0, len(self._lows), 2)]
        # A period without a reading, because the machine was suspended, counts as the one before it.
        self._lows += [self._lows[-1] if self._lows else value] * (place - len(self._lows))
        if place == len(self._lows):
            self._lows.append(value)
        self._lows[place] = min(self._lows[place], value)

    def facts(self) -> WatchedMemory:
        """The periods that have ended, and the current one."""
        return WatchedMemory(name=self._name, every_s=self._every_s, lows=tuple(self._lows))


def resident_bytes() -> int:
    """Memory of this process."""
    return int(psutil.Process().memory_info().rss)


_LONGEST_S = 10 * 365 * 86400.0
"""The child process ends with this one, at the latest after ten years."""
_GPU_INTERVAL_S = 2.0
_JOIN_S = 5.0

ReadMemory = Callable[[], Mapping[str, int]]


class Companion:
    """Watches the machine from the beginning of a training to its end. It never raises into the training."""

    def __init__(
        self, on_tick: Callable[[], None], *, interval_s: float, on_gpus: bool, device_memory: ReadMemory
    ) -> None:
        self._on_tick = on_tick
        self._interval_s = interval_s
        self._device_memory = device_memory
        self._lows: dict[str, Lows] = {}
        self._children = Children()
        self._context = Context(
            python=sys.executable, chosen_by="the job", environ=dict(os.environ), children=self._children
        )
        self._sampler: Sampler | None = None
        self._failures: dict[str, str] = {}
        if on_gpus:
            self._sampler = Sampler(self._context, deadline_s=_LONGEST_S, interval_s=_GPU_INTERVAL_S)
            self._sampler.enter("watch", "training", alone=True)
        self._tail, self.log_unavailable = _open_log(self._context.root / "dev/kmsg")
        self._log: KernelLog | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kdoctor-watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(self._interval_s):
            self.tick()

    def tick(self) -> None:
        """Look at everything once."""
        for name, look in (("memory", self._read_memory), ("log", self._read_log), ("judging", self._on_tick)):
            try:
                look()
            except Exception as error:  # noqa: BLE001 - nothing that is seen or not may end the training
                self._failures[name] = f"{type(error).__name__}: {error}"

    def _read_memory(self) -> None:
        for name, value in {"process": resident_bytes(), **self._device_memory()}.items():
            self._lows.setdefault(name, Lows(name, self._interval_s)).add(value)

    def _read_log(self) -> None:
        if self._tail is not None:
            self._log = self._tail.read()

    @property
    def failures(self) -> Mapping[str, str]:
        """What could not be looked at, and the last error."""
        return dict(self._failures)

    @property
    def memory(self) -> tuple[WatchedMemory, ...]:
        """Memory in use so far."""
        return tuple(lows.facts() for lows in list(self._lows.values()))

    def facts(self) -> Facts:
        """The groups that it fills."""
        log = self._log or Unavailable(unavailable=self.log_unavailable or "the kernel log was not read yet")
        if self._sampler is not None:
            return {GpuSampling: self._sampler.facts(), KernelLog: log}
        return {GpuSampling: GpuSampling(state="not-started", error="the job trains on the CPU"), KernelLog: log}

    def close(self) -> None:
        """End the thread and the child process."""
        self._over.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)
        if self._sampler is not None:
            self._sampler.end()
        self._children.end_all()
        if self._tail is not None:
            with contextlib.suppress(OSError):
                self._tail.close()
            self._tail = None


def _open_log(path: Path) -> tuple[KernelLogTail | None, str | None]:
    """The kernel log from now on, or why it cannot be read."""
    try:
        return KernelLogTail(path), None
    except OSError as error:
        return None, f"the kernel log cannot be read: {reason(error)}"
    except AttributeError:
        return None, "this system has no /dev/kmsg"
