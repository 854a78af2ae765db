"""Environment variables that change what a training job does."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import ClassVar

from kdoctor.facts.base import FactGroup
from kdoctor.records import record


class NotRecordedError(LookupError):
    """A variable was not recorded. A check that asks for it is unknown."""


@record
class Environment(FactGroup):
    """The variables on the allow-list that are set, with secrets masked."""

    group: ClassVar[str] = "environment"

    variables: Mapping[str, str]
    """Name to value. A missing variable is not set, or not on the allow-list."""
    allow_list: tuple[str, ...] = ()
    """Shell-style patterns of the collected names; empty if unknown."""

    def get(self, name: str) -> str | None:
        """The variable's value, or None if it is not set.

        Raises:
            NotRecordedError: it is not on the allow-list, so that it may be set.
        """
        if self.is_unset(name) is None:
            raise NotRecordedError(name)
        return self.variables.get(name)

    def is_unset(self, name: str) -> bool | None:
        """Whether the variable is not set; None if it is not on the allow-list."""
        if name in self.variables:
            return False
        return True if any(fnmatchcase(name, pattern) for pattern in self.allow_list) else None
