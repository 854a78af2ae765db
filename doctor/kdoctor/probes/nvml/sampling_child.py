"""The process that samples every GPU while others train. It ends when its standard input does.

Each GPU has a lane of its own, so that one that hangs is given up while the others go on. Records:
``{"state": ...}`` once NVML is ready or is known not to be; ``{"gpu": <index>, "once": <fields>, "errors": ...}``;
then again and again ``{"gpu": <index>, "took_s": <of the reading>, "sample": <fields>, "errors": <new ones>}``; and
``{"gpu": <index>, "hangs": <field>}`` where a call does not return.
"""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections.abc import Mapping
from typing import Any

import pynvml

from kdoctor.probes.nvml.calls import Read
from kdoctor.probes.nvml.calls.running import AGAIN, ONCE
from kdoctor.probes.nvml.lanes import Lane, Records, Send, initialise

_MARGIN_S = 5.0
"""kdoctor ends this process at its deadline; where kdoctor is gone, it ends itself this much later."""

_FOR_GOOD = {
    "NVML_ERROR_NOT_SUPPORTED",
    "NVML_ERROR_FUNCTION_NOT_FOUND",
    "NVML_ERROR_INVALID_ARGUMENT",
    "NVML_ERROR_ARGUMENT_VERSION_MISMATCH",
    "NVML_ERROR_NO_PERMISSION",
}
"""Errors after which a call is not made again."""


def main(settings: Mapping[str, Any]) -> None:
    """Send samples. ``settings``: ``deadline_s``, ``interval_s`` and ``patience_s``, in seconds."""
    faulthandler.enable(all_threads=True)
    faulthandler.dump_traceback_later(float(settings["deadline_s"]) + _MARGIN_S, exit=True)
    sampler = _Sampler(Records().send, float(settings["interval_s"]), float(settings["patience_s"]))
    for task in (sampler.end_with_stdin, sampler.begin):
        threading.Thread(target=task, daemon=True).start()
    sampler.watch()
    os._exit(0)  # a thread that hangs in the driver keeps an ordinary exit waiting


class _Sampler:
    """Every GPU, each in its lane."""

    def __init__(self, send: Send, interval_s: float, patience_s: float) -> None:
        self._send = send
        self._interval_s = interval_s
        self._patience_s = patience_s
        self._lanes: tuple[_GpuLane, ...] = ()
        self._over = threading.Event()

    def end_with_stdin(self) -> None:
        """Wait for kdoctor to close our standard input, or to be gone."""
        while os.read(0, 1024):
            pass
        self._over.set()

    def begin(self) -> None:
        """Make NVML ready and set every GPU's lane to work."""
        trouble = initialise(self._send)
        system = Lane("system", "", self._send)
        if trouble is None:
            system.read(("count",), pynvml.nvmlDeviceGetCount)
            if "count" not in system.facts:
                trouble = {"state": "failed", "error": f"the number of GPUs: {system.errors['count']}"}
        if trouble is not None:
            self._send(trouble)
            self._over.set()
            return
        self._send({"state": "ready", "at": None})
        self._lanes = tuple(_GpuLane(index, self._send, self._interval_s) for index in range(system.facts["count"]))
        for lane in self._lanes:
            threading.Thread(target=lane.run, daemon=True).start()

    def watch(self) -> None:
        """Tell of calls that do not return, until it is over."""
        while not self._over.wait(self._interval_s):
            for lane in self._lanes:
                lane.tell_if_it_hangs(self._patience_s)


class _GpuLane(Lane):
    """One GPU."""

    def __init__(self, index: int, send: Send, interval_s: float) -> None:
        super().__init__(f"GPU {index}", f"GPU {index}: ", _to_nobody)
        self._index = index
        self._tell = send
        self._interval_s = interval_s
        self._asked_at = time.monotonic()
        self._hangs = False

    def run(self) -> None:
        """Read what does not change, then sample for ever."""
        self._asked_at = time.monotonic()
        self.read(("handle",), lambda: pynvml.nvmlDeviceGetHandleByIndex(self._index))
        handle = self.facts.pop("handle", None)
        if handle is not None:
            self._read_all(ONCE, handle)
        self._tell({"gpu": self._index, "once": self.facts, "errors": self.errors})
        known, calls = dict(self.errors), dict(AGAIN)
        while handle is not None and calls:
            began = time.monotonic()
            self.facts, self.errors = {}, {}
            self._read_all(calls, handle)
            took_s = time.monotonic() - began
            new = {field: error for field, error in self.errors.items() if known.get(field) != error}
            self._tell({"gpu": self._index, "took_s": took_s, "sample": self.facts, "errors": new})
            known.update(new)
            calls = {fields: read for fields, read in calls.items() if not self._is_futile(fields)}
            time.sleep(max(0.0, began + self._interval_s - time.monotonic()))

    def _read_all(self, calls: Mapping[tuple[str, ...], Read], handle: Any) -> None:
        for fields, read in calls.items():
            self._asked_at = time.monotonic()
            self.read(fields, lambda read=read: read(handle))  # type: ignore[misc]
            self._hangs = False

    def _is_futile(self, fields: tuple[str, ...]) -> bool:
        return all(self.errors.get(field) in _FOR_GOOD for field in fields)

    def tell_if_it_hangs(self, patience_s: float) -> None:
        """Say once that a call does not return."""
        pending = self.pending
        if pending and not self._hangs and time.monotonic() - self._asked_at > patience_s:
            self._hangs = True
            self._tell({"gpu": self._index, "hangs": pending[0]})


def _to_nobody(record: object) -> None:
    """A lane says each call that it makes; here nobody is told, for there are many: only one that hangs is."""
