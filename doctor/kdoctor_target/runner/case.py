"""What a scenario's case is given: the devices that are asked for, and a way to say what it sees."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import IO, Any, Dict, NoReturn, Optional

from kdoctor_target.runner.phases import BETWEEN


class NotHere(Exception):  # noqa: N818 - no error, and shown nowhere by its name
    """A case is not for this environment, for the reason that it carries."""


class Case:
    """One training in a process of its own.

    What it says is written at once, so that it is known even if the process hangs or dies later.
    """

    def __init__(  # noqa: PLR0913 - the runner alone makes it
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
        """Where the case's files are: ``<stem>.stacks`` and the like; more may be put beside them."""
        self.deadline_s = deadline_s
        """Seconds after which the case is ended, counted from its start."""
        self.settings = settings or {}
        """What the scenario was given besides (see ``Scenario.settings``)."""
        self.devices_kind = devices_kind
        """``gpu`` or ``cpu``: what the replicas run on."""
        self.replicas = replicas
        """Number of replicas asked for; None for every GPU that TensorFlow lists."""

    def phase(self, name: str, *, finished: bool = True) -> None:
        """Say which phase is entered, and that the one before it is finished unless told otherwise.

        In this order: import (of the program, where need be of the framework too), strategy, reference (the same
        training on one device), build, data, trace, first step, step 2 and so on, save, load, inspect.
        ``Steps`` says those of a training; train stands for them where they cannot be told apart.
        """
        event: Dict[str, Any] = {"phase": name}
        if finished and self._phase not in (None, BETWEEN):
            event["finished"] = self._phase
        self._phase = name
        self.write(event)

    def note(self, **facts: Any) -> None:
        """Say facts of this case, by the names of ``SmokeCase``'s fields. A later word replaces an earlier one.

        A NaN or an infinity becomes None.
        """
        self.write({"facts": plain(facts)})

    def measure(self, numbers: Dict[str, Any]) -> None:
        """Say numbers of this scenario's own, by name. They are added to those said before."""
        self._measures.update(numbers)
        self.note(measures=self._measures)

    def skip(self, reason: str) -> NoReturn:
        """End the case: it is not for this environment.

        Raises:
            NotHere: always; the runner makes it the case's outcome.
        """
        raise NotHere(reason)

    def write(self, event: Dict[str, Any]) -> None:
        """Hand one event to the runner."""
        self._events.write(json.dumps(event, allow_nan=False) + "\n")
        self._events.flush()


def plain(value: Any) -> Any:
    """The value in JSON's types; NumPy's scalars are numbers too."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    number = float(value)
    return number if math.isfinite(number) else None
