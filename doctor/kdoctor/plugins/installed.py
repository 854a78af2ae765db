"""The entry points by which a distribution adds to kdoctor. Extensions of this project use them, too."""

from __future__ import annotations

from importlib import metadata
from typing import Any, Literal, get_args

from kdoctor.errors import UsageError

Group = Literal[
    "api", "checklists", "checks", "commands", "documents", "explanations", "facts", "failures",
    "formats", "matrices", "options", "probes", "scenarios", "tools",
]  # fmt: skip
"""Names of the groups without their prefix. docs/writing-plugins.md says what each of them takes."""
GROUPS: tuple[Group, ...] = get_args(Group)
PREFIX = "kdoctor."
"""The groups are ``kdoctor.checks``, ``kdoctor.probes``, ..."""


def offers(group: Group) -> list[metadata.EntryPoint]:
    """The entry points of a group, none of them imported, in an order that does not depend on the installation."""
    return sorted(metadata.entry_points(group=PREFIX + group), key=lambda entry: entry.value)


def origin_of(entry: metadata.EntryPoint) -> str:
    """The distribution and the entry point, for messages."""
    return f"{entry.dist.name if entry.dist else 'an unknown distribution'} ({entry.group}: {entry.name})"


def load(entry: metadata.EntryPoint) -> Any:
    """Import what an entry point names.

    Raises:
        UsageError: it cannot be imported.
    """
    try:
        return entry.load()
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
        raise UsageError(
            f"{origin_of(entry)} cannot be imported from {entry.value}: {reason}",
            hint="Fix, reinstall or remove that plugin.",
        ) from error


def named(group: Group) -> dict[str, metadata.EntryPoint]:
    """The entry points of a group by name.

    Raises:
        UsageError: two distributions offer the same name.
    """
    found: dict[str, metadata.EntryPoint] = {}
    for entry in offers(group):
        if entry.name in found:
            raise UsageError(f"{entry.name} is offered by both {origin_of(found[entry.name])} and {origin_of(entry)}")
        found[entry.name] = entry
    return found
