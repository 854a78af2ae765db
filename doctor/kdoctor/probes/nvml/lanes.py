"""What the processes that talk to NVML have in common: their records, how NVML is begun, and lanes.

A lane is a thread that makes calls one after another. It says which call it makes before it makes it, so that a hang or
a crash can be placed.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pynvml

from kdoctor.probes.nvml.calls import Failure, code, error_name

Send = Callable[[object], None]
"""Hands one record to kdoctor."""

_STATES = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "library-absent",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "driver-not-loaded",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "library-mismatch",
    pynvml.NVML_ERROR_NO_PERMISSION: "no-permission",
}


class Records:
    """The pipe to kdoctor."""

    def __init__(self) -> None:
        """Take standard output: the driver's library may print, and what it prints must not end up here."""
        self._pipe = os.dup(1)
        os.dup2(2, 1)

    def send(self, record: object) -> None:
        """Write a record; in one piece, so that those of several threads do not mix."""
        text = ("\x1e" + json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        while text:
            text = text[os.write(self._pipe, text) :]


def initialise(send: Send) -> dict[str, str] | None:
    """None if NVML is ready; else the state and why."""
    send({"at": "loading the NVML library"})
    loader = _loader_error()
    send({"at": "nvmlInit"})
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        state = _STATES.get(code(error), "failed")
        if state == "library-absent" and loader and not _means_absent(loader):
            state = "failed"
        words = loader if code(error) == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND and loader else str(error)
        return {"state": state, "error": f"{error_name(error)}: {words}"}
    except Exception as error:  # noqa: BLE001 - a stranger's library of that name may answer anything
        return {"state": "failed", "error": f"{type(error).__name__}: {error}"}
    send({"at": None})
    return None


class Lane:
    """Calls that one thread makes one after another, and what they said."""

    def __init__(self, name: str, subject: str, send: Send) -> None:
        self.facts: dict[str, Any] = {}
        self.errors: dict[str, str] = {}
        self.pending: tuple[str, ...] = ()
        """The fields of the call that has not returned yet."""
        self._name = name
        self._subject = subject
        self._send = send

    def read(self, fields: tuple[str, ...], call: Callable[[], Any]) -> None:
        """Make a call for some fields and keep what it says of each: a fact, or an error's name."""
        self.pending = fields
        self._send({"lane": self._name, "at": f"the call for {self._subject}{fields[0]}"})
        try:
            answer = call()
            values = answer if len(fields) > 1 else (answer,)
        except Exception as error:  # noqa: BLE001 - NVMLLibraryMismatchError and decoding errors are no NVMLError
            values = [Failure(error_name(error))] * len(fields)
        for field, value in zip(fields, values, strict=True):
            if isinstance(value, Failure):
                self.errors[field] = value.error
            else:
                self.facts[field] = value
        self.pending = ()

    def end(self) -> None:
        """Say that this thread is in no call any more."""
        self._send({"lane": self._name, "at": None})


def _loader_error() -> str | None:
    """Why the dynamic loader cannot load NVML, in its own words; the binding keeps them to itself."""
    if sys.platform == "win32":
        return None
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        return str(error)
    return None


def _means_absent(loader: str) -> bool:
    """Whether the loader found no such file; anything else is a library that is there and broken."""
    absent = ("no such file", "cannot open shared object file", "image not found")
    return "libnvidia-ml.so.1" in loader and any(words in loader.lower() for words in absent)
