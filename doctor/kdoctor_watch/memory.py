"""Memory in use over a run of any length, in constant space."""

import time

import psutil

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
