"""What a smoke scenario is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ScenarioKind = Literal["baseline", "edge-case", "failure-path"]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A training that is run for real, case by case, each case in a process of its own.

    Third parties add theirs by the entry point ``kdoctor.scenarios``.
    """

    id: str
    """``smoke.<slug>``; stable for ever."""
    version: int
    """Raised whenever what it measures changes, so that recorded outcomes can be compared."""
    kind: ScenarioKind
    title: str
    expect: str
    """The expected outcome in plain language; a checklist may word its own."""
    program: Path
    """A Python file that defines ``CASES``: case name to a function that takes the case's context.
    It runs in the target interpreter and may use the standard library, TensorFlow and ``kdoctor_target``."""
    cases: tuple[str, ...]
    """Names of the program's cases, in order."""
    deadline_s: float
    """Seconds for each case after TensorFlow was imported."""
