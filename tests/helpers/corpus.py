"""Recorded machines in the folder KDOCTOR_CORPUS. Its INDEX.md lists the source of each file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from kdoctor.facts import FactGroup
from kdoctor.snapshot.imports.importer import import_files

REASON = "KDOCTOR_CORPUS is not set"


def recorded(name: str) -> Path:
    """The path of a recorded file. Skips the test without a corpus."""
    folder = os.environ.get("KDOCTOR_CORPUS")
    if not folder:
        pytest.skip(REASON)
    return Path(folder) / name


def corpus_snapshot(*names: str) -> Mapping[type[FactGroup], FactGroup]:
    """The facts that ``kdoctor snapshot --import`` reads from the recorded files of one machine."""
    return import_files([recorded(name) for name in names]).facts
