"""The process that samples every GPU during the trainings. It ends when its standard input closes.

Each GPU has a separate lane, so that one that hangs does not stop the others. Records:

- ``{"state": ...}`` once NVML is ready or has failed;
- ``{"gpu": <index>, "once": <fields>, "errors": ...}``;
- repeatedly ``{"gpu": <index>, "took_s": <of the reading>, "sample": <fields>, "errors": <new ones>}``;
- ``{"gpu": <index>, "hangs": <field>}`` for a call that does not return.
"""

import os
import threading
import time
from collections.abc import Mapping
from typing import Any

import pynvml

from kdoctor.probes.nvml.calls.answers import Read
from kdoctor.probes.nvml.calls.running import AGAIN, ONCE
from kdoctor.probes.nvml.lanes import Lane, Records, Send, arm_watchdog, initialise

_PERMANENT = {
    "NVML_ERROR_NOT_SUPPORTED",
    "NVML_ERROR_FUNCTION_NOT_FOUND",
    "NVML_ERROR_INVALID_ARGUMENT",
    "NVML_ERROR_ARGUMENT_VERSION_MISMATCH",
    "NVML_ERROR_NO_PERMISSION",
}
"""Errors after which a call is not repeated."""


def main(settings: Mapping[str, Any]) -> None:
    """Send samples. ``settings``: ``deadline_s``, ``interval_s`` and ``patience_s``, in seconds."""
    arm_watchdog(float(settings["deadline_s"]))
    sampler = _Sampler(Records().send, float(settings["interval_s"]), float(settings["patience_s"]))
    for task in (sampler.end_with_stdin, sampler.begin):
        threading.Thread(target=task, daemon=True).start()
    sampler.watch()
    os._exit(0)  # an ordinary exit would wait for a thread that hangs in the driver


class _Sampler:
    def __init__(self, send: Send, interval_s: float, patience_s: float) -> None:
        self._send = send
        self._interval_s = interval_s
        self._patience_s = patience_s
        self._lanes: tuple[_GpuLane, ...] = ()
        self._over = threading.Event()

    def end_with_stdin(self) -> None:
        """Wait until kdoctor closes our standard input, or is gone."""
        while os.read(0, 1024):
            pass
        self._over.set()

    def begin(self) -> None:
        """Initialise NVML and start every GPU's lane."""
        failure = initialise(self._send)
        system = Lane("system", "", self._send)
        if failure is None:
            system.read(("count",), pynvml.nvmlDeviceGetCount)
            if "count" not in system.facts:
                failure = {"state": "failed", "error": f"the number of GPUs: {system.errors['count']}"}
        if failure is not None:
            self._send(failure)
            self._over.set()
            return
        self._send({"state": "ready", "at": None})
        self._lanes = tuple(_GpuLane(index, self._send, self._interval_s) for index in range(system.facts["count"]))
        for lane in self._lanes:
            threading.Thread(target=lane.run, daemon=True).start()

    def watch(self) -> None:
        """Report calls that do not return, until the end."""
        while not self._over.wait(self._interval_s):
            for lane in self._lanes:
                lane.report_hang(self._patience_s)


class _GpuLane(Lane):
    def __init__(self, index: int, send: Send, interval_s: float) -> None:
        super().__init__(f"GPU {index}", f"GPU {index}: ", lambda _: None)  # too many calls: only hangs are reported
        self._index = index
        self._report = send
        self._interval_s = interval_s
        self._asked_at = time.monotonic()
        self._hangs = False

    def run(self) -> None:
        """Read the constant fields, then sample forever."""
        self._asked_at = time.monotonic()
        self.read(("handle",), lambda: pynvml.nvmlDeviceGetHandleByIndex(self._index))
        handle = self.facts.pop("handle", None)
        if handle is not None:
            self._read_all(ONCE, handle)
        self._report({"gpu": self._index, "once": self.facts, "errors": self.errors})
        known, calls = dict(self.errors), dict(AGAIN)
        while handle is not None and calls:
            began = time.monotonic()
            self.facts, self.errors = {}, {}
            self._read_all(calls, handle)
            took_s = time.monotonic() - began
            new = {field: error for field, error in self.errors.items() if known.get(field) != error}
            self._report({"gpu": self._index, "took_s": took_s, "sample": self.facts, "errors": new})
            known.update(new)
            calls = {fields: read for fields, read in calls.items() if not self._is_futile(fields)}
            time.sleep(max(0.0, began + self._interval_s - time.monotonic()))

    def _read_all(self, calls: Mapping[tuple[str, ...], Read], handle: Any) -> None:
        for fields, read in calls.items():
            self._asked_at = time.monotonic()
            self.read(fields, lambda read=read: read(handle))  # type: ignore[misc]
            self._hangs = False

    def _is_futile(self, fields: tuple[str, ...]) -> bool:
        return all(self.errors.get(field) in _PERMANENT for field in fields)

    def report_hang(self, patience_s: float) -> None:
        """Report once that a call does not return."""
        pending = self.pending
        if pending and not self._hangs and time.monotonic() - self._asked_at > patience_s:
            self._hangs = True
            self._report({"gpu": self._index, "hangs": pending[0]})
