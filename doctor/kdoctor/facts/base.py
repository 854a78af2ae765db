"""The base of every group of facts, and the facts of a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class FactGroup:
    """The facts about one subject, read once and immutable.

    Within a group, ``None`` means that the machine did not report a value: never "no" and never zero.
    """

    group: ClassVar[str]
    """The group's key in a snapshot."""


@dataclass(frozen=True, kw_only=True)
class Unavailable:
    """A group of facts that could not be collected. Every check that reads it is unknown."""

    unavailable: str
    """The reason, as shown in a report."""


Facts = Mapping[type[FactGroup], FactGroup | Unavailable]
"""The facts of a machine: each group's type to the group, or to why it is unavailable."""
