"""What a scenario's case gets: the requested devices, and methods to report its progress and results."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import math
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import IO, Any, Callable, Dict, NoReturn, Optional

from kdoctor_target.runner.outcome import describe_error, peak_memory
from kdoctor_target.runner.phases import BETWEEN

_LONG_S = 3600.0


class NotHere(Exception):  # noqa: N818 - not an error, and its name is never shown
    """A case does not apply to this environment; the message is the reason."""


class Case:
    """One training, in a separate process.

    Whatever it reports is written at once, so that it survives a later hang or crash.
    """

    def __init__(  # noqa: PLR0913 - made by the runner only
        self,
        events: IO[str],
        devices_kind: str,
        replicas: Optional[int],
        *,
        stem: Path,
        deadline_s: float,
        settings: Optional[Dict[str, Any]] = None,
    ) -> None:
        self._events = events
        self._measures: Dict[str, Any] = {}
        self._phase: Optional[str] = None
        self.stem = stem
        """Path of the case's files without their suffix; see :meth:`file`."""
        self.deadline_s = deadline_s
        """Seconds from its start after which the case is ended."""
        self.settings = settings or {}
        """The scenario's settings (see ``Scenario.settings``)."""
        self.devices_kind = devices_kind
        """``gpu`` or ``cpu``: the devices that the replicas run on."""
        self.replicas = replicas
        """Number of requested replicas; None for every GPU that TensorFlow lists."""

    def file(self, suffix: str) -> Path:
        """``<stem>.<suffix>``: the path of a file of this case."""
        return self.stem.with_name(f"{self.stem.name}.{suffix}")

    def phase(self, name: str, *, finished: bool = True) -> None:
        """Report that a phase begins, and that the one before it is finished unless ``finished`` is false.

        In this order: import (of the program, and of the framework if necessary), strategy, reference (the same
        training on one device), build, data, trace, first step, step 2 and so on, save, load, inspect.
        ``Steps`` reports those of a training; ``train`` is used instead if steps cannot be distinguished.
        """
        event: Dict[str, Any] = {"phase": name}
        if finished and self._phase not in (None, BETWEEN):
            event["finished"] = self._phase
        self._phase = name
        self.write(event)

    def note(self, **facts: Any) -> None:
        """Report facts, by the names of ``SmokeCase``'s fields. Later values replace earlier ones; NaN becomes None."""
        self.write({"facts": plain(facts)})

    def die_after(self, step: int) -> None:
        """Make this process kill itself after that step."""
        note = self.note

        def note_and_die(**facts: Any) -> None:
            note(**facts)
            if facts.get("steps") == step:
                os.kill(os.getpid(), signal.SIGKILL)

        self.note = note_and_die  # type: ignore[method-assign]

    def measure(self, numbers: Dict[str, Any]) -> None:
        """Report numbers that are specific to this scenario, in addition to the earlier ones."""
        self._measures.update(numbers)
        self.note(measures=self._measures)

    def skip(self, reason: str) -> NoReturn:
        """End the case because it does not apply to this environment.

        Raises:
            NotHere: always; the runner turns it into the case's outcome.
        """
        raise NotHere(reason)

    def conclude(self, function: Callable[[], object]) -> NoReturn:
        """Call what the case consists of, report how it ended, and end this process without any clean-up.

        The job may have closed the standard streams.
        """
        try:
            function()
            end: Dict[str, Any] = {"outcome": "trained"}
        except NotHere as skipped:
            end = {"outcome": "skipped", "skip_reason": str(skipped)}
        except BaseException as error:
            end = describe_error(error)
            with contextlib.suppress(Exception):
                traceback.print_exc()
        faulthandler.cancel_dump_traceback_later()
        self._note_peak_memory()
        self.write({"end": end})
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(0)

    def go_on(self, rest: Callable[[], object]) -> NoReturn:
        """Conclude the case in another thread.

        This one stays where it is: the job's code that has called it does not go on, nor do its ``finally`` clauses.
        """
        threading.Thread(target=self.conclude, args=(rest,), daemon=True).start()
        while True:
            time.sleep(_LONG_S)

    def _note_peak_memory(self) -> None:
        try:
            import resource
        except ImportError:  # Windows
            return
        self.note(peak_memory_bytes=peak_memory(resource.getrusage(resource.RUSAGE_SELF)))

    def write(self, event: Dict[str, Any]) -> None:
        """Send one event to the runner."""
        self._events.write(json.dumps(event, allow_nan=False) + "\n")
        self._events.flush()


def plain(value: Any) -> Any:
    """The value in JSON's types; NumPy scalars become numbers, NaN and infinities become None."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    number = float(value)
    return number if math.isfinite(number) else None
