"""What a probe is: it reads one corner of the machine into facts, and has no opinion."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kdoctor.facts import Choice, FactGroup, Unavailable
from kdoctor.probes.process.child import Children

ROOT_VARIABLE = "KDOCTOR_ROOT"
"""For tests of the whole command line: a folder that holds the /sys, /proc and /dev of another machine."""

Collected = Mapping[type[FactGroup], "FactGroup | Unavailable"]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a probe may use."""

    python: str
    """Path of the target interpreter."""
    chosen_by: Choice
    """How the target was chosen."""
    environ: Mapping[str, str]
    """The environment that the job would start with."""
    children: Children
    root: Path = field(default_factory=lambda: Path(os.environ.get(ROOT_VARIABLE) or "/"))
    """Root of /sys, /proc and /dev; tests set another."""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Reads some groups of facts. Third parties add theirs by the entry point ``kdoctor.probes``."""

    name: str
    """Short name, for progress and messages."""
    provides: tuple[type[FactGroup], ...]
    """The groups that ``collect`` returns, each with its facts or ``Unavailable``."""
    collect: Callable[[Context], Collected]
    deadline_s: float
    """Seconds after which its groups are unavailable."""
