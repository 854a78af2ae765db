"""The interface of a probe, which reads one part of the machine into facts and does not judge it."""

import os
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from kdoctor.facts import FactGroup, Facts
from kdoctor.probes.process.child import Children
from kdoctor.records import record

ROOT_VARIABLE = "KDOCTOR_ROOT"
"""For tests of the command line: a folder with the /sys, /proc and /dev of another machine."""


@record
class Context:
    """The inputs of a probe."""

    python: str
    """Path of the target interpreter."""
    chosen_by: str
    """How the target was chosen. As in ``Target``."""
    environ: Mapping[str, str]
    """The environment variables of the job."""
    children: Children
    stand_in: bool = False
    """Whether kdoctor's own environment is examined instead of the job's. As in ``Target``."""
    first_folder: Path | None = None
    """The folder that Python searches first: that of the job's script or modules."""
    root: Path = field(default_factory=lambda: Path(os.environ.get(ROOT_VARIABLE) or "/"))
    """Root of /sys, /proc and /dev; different in tests."""


@record
class Probe:
    """Reads some groups of facts. Plugins add probes with the entry point ``kdoctor.probes``."""

    name: str
    """Short name, for messages."""
    provides: tuple[type[FactGroup], ...]
    """The groups that ``collect`` returns."""
    collect: Callable[[Context], Facts]
    deadline_s: float = 10
    """Seconds after which its groups are unavailable."""
