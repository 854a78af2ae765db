"""Pieces of commands that several kinds of steps have in common."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from kdoctor.engine.report import DriftChange


def restores(changes: Iterable[DriftChange]) -> tuple[str, ...]:
    """``packages.keras: 3.6.0 -> 3.15.1``, each fact that comes back."""
    return tuple(f"{change.fact}: {change.new or 'nothing'} -> {change.old or 'nothing'}" for change in changes)


def quoted(words: Iterable[str]) -> str:
    """The words for a shell."""
    return " ".join(shlex.quote(word) for word in words)
