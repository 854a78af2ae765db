"""Runs fixed programs on the job's devices between two steps, and compares their outputs bit by bit.

The programs are those of ``smoke.same-bits`` that are deterministic without the framework's deterministic operations.
They draw no random numbers, make no variables and trace nothing of TensorFlow's.
"""

import contextlib
import importlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kdoctor.facts import BitDifference
from kdoctor_watch.facts import WatchedBits
from kdoctor_watch.publish import brief


class Canary:
    """The comparisons during one training. The first round is before its first step."""

    def __init__(
        self, every_s: float | None, devices: Sequence[str], *, is_jax: bool, saves: Path | None = None
    ) -> None:
        self._every_s = every_s
        self._saves = saves
        self._kept: Path | None = None
        self._devices = devices
        self._is_jax = is_jax
        self._comparison: Any = None
        self._due = float("inf")
        self._clean: int | None = None
        self._clean_at: float | None = None
        self._found: int | None = None
        self._seconds = 0.0
        self._slowest_s = 0.0
        self._unavailable: str | None = None

    @property
    def is_due(self) -> bool:
        """Whether the time for a round has come."""
        return time.monotonic() >= self._due

    def start(self) -> bool:
        """The first round, with which the others are compared. Returns whether it shows a difference."""
        return self._every_s is not None and self._run(self._first, -1)

    def look(self, done: int, *, last: bool = False) -> bool:
        """A round after step ``done``. In the last one, the devices are compared on the host, too.

        Returns:
            Whether it shows a difference that was not known.
        """
        if self._comparison is None or self._unavailable is not None:
            return False
        began = time.monotonic()
        is_new = self._run(lambda: self._comparison.again(devices=last), done)
        spent = time.monotonic() - began
        self._seconds, self._slowest_s = self._seconds + spent, max(self._slowest_s, spent)
        return is_new

    def _first(self) -> None:
        from kdoctor_target.training.same_bits import SIZES, Comparison

        framework = "jax" if self._is_jax else "tensorflow"
        made = importlib.import_module(f"kdoctor_target.training.same_bits_{framework}")
        devices: Sequence[Any] = self._devices or ("/device:CPU:0",)
        if self._is_jax:
            devices = importlib.import_module("jax").local_devices()
        sizes = SIZES["canary" if any("GPU" in device for device in self._devices) else "cpu"]
        self._comparison = Comparison(made.make_programs(devices, sizes, trains=False), made.models_of(devices))
        self._comparison.begin()

    def _run(self, work: Callable[[], object], done: int) -> bool:
        known, began = self._known(), time.time()
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a full memory must not end the training
            self._unavailable = brief(error)
            self._due = float("inf")
            return False
        self._due = time.monotonic() + (self._every_s or 0.0)
        if not self._known():
            self._clean, self._clean_at = done, began
        elif self._found is None:
            self._found, self._kept = done, self._newest_clean()
        return self._known() > known

    def _newest_clean(self) -> Path | None:
        """The newest file of the job's saves that is older than the last clean round."""
        times: dict[Path, float] = {}
        for path in self._saves.rglob("*") if self._saves and self._clean_at else ():
            with contextlib.suppress(OSError):  # the job replaces it
                times[path] = path.stat().st_mtime
        older = [path for path, at in times.items() if path.is_file() and at < (self._clean_at or 0.0)]
        return max(older, key=times.__getitem__, default=None)

    def _known(self) -> int:
        return len(self._comparison.differences) if self._comparison else 0

    def facts(self) -> WatchedBits:
        """The comparisons so far."""
        comparison = self._comparison
        return WatchedBits(
            every_s=self._every_s,
            rounds=comparison.rounds if comparison else 0,
            programs=tuple(comparison.programs) if comparison else (),
            devices=len(self._devices) or 1,
            clean_step=self._clean,
            clean_at=self._clean_at,
            saves=None if self._saves is None else str(self._saves),
            kept=None if self._kept is None else str(self._kept),
            found_step=self._found,
            seconds=self._seconds,
            slowest_s=self._slowest_s,
            unavailable=self._unavailable,
            differences=tuple(BitDifference(**one) for one in comparison.differences) if comparison else (),
        )
