"""The base of every group of facts, and the facts of a machine."""

import re
from collections.abc import Mapping
from typing import ClassVar

from kdoctor.records import record


@record
class FactGroup:
    """The facts about one subject, read once and immutable.

    Within a group, ``None`` means that the machine did not report a value: never "no" and never zero.
    """

    group: ClassVar[str]
    """The group's key in a snapshot."""
    in_snapshots: ClassVar[bool] = True
    """Whether it is about one machine, so that a snapshot may contain it."""
    unrecorded: ClassVar[str] = ""
    """Why a check that asks for it is skipped with a recording that has neither this group nor the environment; empty
    if such a check is unknown."""

    def caveat(self) -> str:
        """What a report says about where these facts are from; empty if there is nothing to say."""
        return ""

    def contradiction(self, facts: "Facts") -> str:  # noqa: ARG002 - of those that have one
        """Why these facts cannot be those of a machine with the others; empty if they can."""
        return ""

    def shared(self) -> Mapping[str, Mapping[str, str]]:
        """What it says that other nodes of a job should share, by section: no serial numbers, paths or host names."""
        return {}


@record
class Unavailable:
    """A group of facts that could not be collected. Every check that reads it is unknown."""

    unavailable: str
    """The reason, as shown in a report."""
    interpreter: str = ""
    """The examined interpreter, if it ended with an error before it ran anything: no job starts in it either."""
    ended_by: str = ""
    """The file of its environment whose code ended it; empty if none did."""


_NOT_COLLECTED = "no facts about {} were collected"


class NotCollected(Unavailable):
    """A group that was not asked for, or that a snapshot does not contain."""

    def __init__(self, group: type[FactGroup]) -> None:
        super().__init__(unavailable=_NOT_COLLECTED.format(group.group))


def group_not_collected(reason: str) -> str | None:
    """The key of the group for which a report gives this reason; None without one."""
    found = re.search(_NOT_COLLECTED.format(r"(\w+)"), reason)
    return found[1] if found else None


_NOT_IN = re.compile(r"(?:^|\(|: )not in (?!the\b)|\(an excerpt\)|the others are not in it|may be cut off")


def is_not_recorded(reason: str) -> bool:
    """Whether a reason says that a recording lacks facts: a group, a value, a GPU, or its beginning."""
    return group_not_collected(reason) is not None or _NOT_IN.search(reason) is not None


Facts = Mapping[type[FactGroup], FactGroup | Unavailable]
"""The facts of a machine: each group's type to the group, or to why it is unavailable."""
