"""Machines that others recorded, in the folder that KDOCTOR_CORPUS names (its INDEX.md says where each is from)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from kdoctor.facts import FactGroup
from kdoctor.snapshot.imports.importer import import_files

REASON = "KDOCTOR_CORPUS names no folder of recorded machines"


def recorded(name: str) -> Path:
    """The path of a recorded file; the test is skipped where there is no corpus."""
    folder = os.environ.get("KDOCTOR_CORPUS")
    if not folder:
        pytest.skip(REASON)
    return Path(folder) / name


def corpus_snapshot(*names: str) -> Mapping[type[FactGroup], FactGroup]:
    """The facts that ``kdoctor snapshot --import`` makes of recorded files of one machine: ``smi-q/....txt``, ..."""
    return import_files([recorded(name) for name in names]).facts
