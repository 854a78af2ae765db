"""Environment variables that change what a training job does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

from kdoctor.facts.base import FactGroup


@dataclass(frozen=True, kw_only=True)
class Environment(FactGroup):
    """The variables of the allow-list that are set. Secrets are masked when they are read."""

    group: ClassVar[str] = "environment"

    variables: Mapping[str, str]
    """Name to value; a variable that is not here is not set, or not on the allow-list."""
    allow_list: tuple[str, ...] = ()
    """Shell-style patterns of the names that were looked for; empty where that is not recorded."""

    def get(self, name: str) -> str | None:
        """The variable's value, or None if it is not set."""
        return self.variables.get(name)

    def is_unset(self, name: str) -> bool | None:
        """Whether the variable is not set; None where it was not looked for."""
        if name in self.variables:
            return False
        return True if any(fnmatchcase(name, pattern) for pattern in self.allow_list) else None
