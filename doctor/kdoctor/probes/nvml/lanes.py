"""Shared parts of the processes that call NVML: their records, the initialisation of NVML, and lanes.

A lane is a thread that makes calls in sequence. It reports each call before it makes it, to locate a hang or a crash.
"""

import ctypes
import faulthandler
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pynvml

from kdoctor.probes.nvml.calls.answers import Failure, code, error_name

Send = Callable[[object], None]
"""Sends one record to kdoctor."""

_MARGIN_S = 5.0
"""kdoctor ends a process at its deadline; if kdoctor is gone, the process ends itself this much later."""

_STATES = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "library-absent",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "driver-not-loaded",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "library-mismatch",
    pynvml.NVML_ERROR_NO_PERMISSION: "no-permission",
}


def arm_watchdog(deadline_s: float) -> None:
    """End this process, with its Python stacks on stderr, if it still runs well after its deadline."""
    faulthandler.enable(all_threads=True)
    faulthandler.dump_traceback_later(deadline_s + _MARGIN_S, exit=True)


class Records:
    """The pipe to kdoctor."""

    def __init__(self) -> None:
        """Take over standard output, and redirect what the driver's library prints to it."""
        self._pipe = os.dup(1)
        os.dup2(2, 1)

    def send(self, record: object) -> None:
        """Write a record in one piece, so that records of several threads do not mix."""
        text = ("\x1e" + json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        while text:
            text = text[os.write(self._pipe, text) :]


def initialise(send: Send) -> dict[str, str] | None:
    """None if NVML is ready; else the state and the error."""
    send({"at": "loading the NVML library"})
    loader = _loader_error()
    send({"at": "nvmlInit"})
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        state = _STATES.get(code(error), "failed")
        if state == "library-absent" and loader and not _means_absent(loader):
            state = "failed"
        message = loader if code(error) == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND and loader else str(error)
        return {"state": state, "error": f"{error_name(error)}: {message}"}
    except Exception as error:  # noqa: BLE001 - a different library of that name may do anything
        return {"state": "failed", "error": f"{type(error).__name__}: {error}"}
    send({"at": None})
    return None


class Lane:
    """Calls that one thread makes in sequence, and their results."""

    def __init__(self, name: str, subject: str, send: Send) -> None:
        self.facts: dict[str, Any] = {}
        self.errors: dict[str, str] = {}
        self.pending: tuple[str, ...] = ()
        """The fields of the call that has not returned yet."""
        self._name = name
        self._subject = subject
        self._send = send

    def read(self, fields: tuple[str, ...], call: Callable[[], Any]) -> None:
        """Make a call for some fields, and record each one's fact or error."""
        self.pending = fields
        self._send({"lane": self._name, "at": f"the call for {self._subject}{fields[0]}"})
        try:
            answer = call()
            values = answer if len(fields) > 1 else (answer,)
        except Exception as error:  # noqa: BLE001 - NVMLLibraryMismatchError and decoding errors are not NVMLErrors
            values = [Failure(error_name(error))] * len(fields)
        for field, value in zip(fields, values, strict=True):
            if isinstance(value, Failure):
                self.errors[field] = value.error
            else:
                self.facts[field] = value
        self.pending = ()

    def end(self) -> None:
        """Report that this thread makes no more calls."""
        self._send({"lane": self._name, "at": None})


def _loader_error() -> str | None:
    """The dynamic loader's message if it cannot load NVML, which the binding does not report."""
    if sys.platform == "win32":
        return None
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        return str(error)
    return None


def _means_absent(loader: str) -> bool:
    """Whether the loader did not find the file; other errors mean a broken library."""
    absent = ("no such file", "cannot open shared object file", "image not found")
    return "libnvidia-ml.so.1" in loader and any(words in loader.lower() for words in absent)
