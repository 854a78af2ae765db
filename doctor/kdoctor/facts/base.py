"""What every group of facts has in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class FactGroup:
    """One subject's facts, read once and never changed.

    Inside a group, ``None`` means "the machine did not say", never "no" and never zero.
    """

    group: ClassVar[str]
    """The group's key in a snapshot."""


@dataclass(frozen=True, kw_only=True)
class Unavailable:
    """A group of facts that could not be collected, and why. Every check that reads it is unknown."""

    unavailable: str
    """Why, in words fit for a report."""
