"""What the user asks of ``kdoctor.Watch``, examined before the training begins."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from kdoctor.catalog.load import load_catalog
from kdoctor.checklist.resolve import parameter_value
from kdoctor.records import record
from kdoctor.run.plan import Plan, plan_without_checklist
from kdoctor_watch.publish import WatchFinding

FAMILY = "watch"
CHECKPOINT = "kdoctor-watch.keras"
_MODEL_FILES = (".keras", ".h5")
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_LONGEST_S = 10 * 365 * 86400.0
"""Ten years. A timer takes no endless time."""


@record
class Settings:
    """The arguments of :class:`kdoctor.Watch`.

    Raises:
        ValueError: one of them is not what is expected.
    """

    every: int | None = None
    on_finding: Callable[[WatchFinding], object] | None = None
    on_error: Literal["report", "stop"] = "report"
    checkpoint: str | Path | None = None
    tensorboard: str | Path | None = None
    report: str | Path | None = None
    history: bool = True
    lock: str | Path | None = None
    stall_s: float = 120.0
    interval_s: float = 5.0
    canary: str | float | None = None
    saves: str | Path | None = None
    limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def canary_s(self) -> float | None:
        """Seconds between two rounds of the canary; None for none.

        Raises:
            ValueError: it is not a time.
        """
        if self.canary is None:
            return None
        seconds: Any = self.canary
        if found := re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|min|h)", str(seconds)):
            seconds = float(found[1]) * _UNITS[found[2]]
        if isinstance(seconds, (int, float)) and seconds is not True and 0 < seconds <= _LONGEST_S:
            return float(seconds)
        raise ValueError(f"canary: expected a time such as '10min', '1h' or a number of seconds, found {self.canary!r}")

    def __post_init__(self) -> None:
        if self.every is not None and (type(self.every) is not int or self.every < 1):
            raise ValueError(f"every: expected at least 1 step, found {self.every!r}")
        if self.on_finding is not None and not callable(self.on_finding):
            raise ValueError(f"on_finding: expected a function, found {self.on_finding!r}")
        if self.on_error not in ("report", "stop"):
            raise ValueError(f"on_error: expected 'report' or 'stop', found {self.on_error!r}")
        for name in ("checkpoint", "tensorboard", "report", "lock", "saves"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (str, os.PathLike)) and str(value)):
                raise ValueError(f"{name}: expected a path, found {value!r}")
        if self.checkpoint is not None and Path(self.checkpoint).suffix not in _MODEL_FILES:
            raise ValueError(
                f"checkpoint: expected a file that ends with .keras or .h5, found {str(self.checkpoint)!r}"
            )
        for name in ("stall_s", "interval_s"):
            seconds = getattr(self, name)
            if not (isinstance(seconds, (int, float)) and 0 < seconds <= _LONGEST_S):
                raise ValueError(f"{name}: expected seconds above 0, at most {_LONGEST_S:.0f}, found {seconds!r}")
        self.canary_s  # noqa: B018 - raises
        if self.limits:
            plan_of(self.limits)


def plan_of(limits: Mapping[str, Mapping[str, Any]]) -> Plan:
    """The checks of this family, without a checklist file.

    Raises:
        ValueError: a limit is not that of a check, or its value does not fit.
    """
    checks = [check for check in load_catalog().checks.values() if check.family == FAMILY]
    given: Any = limits
    if not (isinstance(given, Mapping) and all(isinstance(one, Mapping) for one in given.values())):
        raise ValueError(
            f"limits: expected parameters by check, {{'watch.step-time': {{'factor': 1.2}}}}; found {limits!r}"
        )
    unknown = sorted(limits.keys() - {check.id for check in checks})
    if unknown:
        raise ValueError(f"limits: no check of kdoctor.Watch has the id {unknown[0]!r}")
    for check in checks:
        for name, value in limits.get(check.id, {}).items():
            if name not in check.parameters:
                known = ", ".join(check.parameters) or "none"
                raise ValueError(f"limits: {check.id} has no parameter {name!r} (parameters: {known})")
            try:
                parameter_value(check.parameters[name], value)
            except ValueError as error:
                raise ValueError(f"limits: parameter {name!r} of {check.id} cannot be {value!r}") from error
    return plan_without_checklist(FAMILY, "kdoctor.Watch", checks, parameters=limits)
