"""The entry points by which a distribution adds to kdoctor. Extensions of this project use them, too."""

import sys
from collections.abc import Collection, Iterator
from functools import lru_cache
from importlib import metadata, resources
from typing import Any, Literal, get_args

from kdoctor.errors import UsageError, fault_of_plugin
from kdoctor.text.kinds import describe_kind

if sys.version_info >= (3, 11):
    from importlib.resources.abc import Traversable as Traversable  # noqa: PLC0414 - for others to import
else:
    from importlib.abc import Traversable as Traversable  # noqa: PLC0414 - for others to import

Group = Literal[
    "api", "checklists", "checks", "commands", "documents", "explanations", "facts", "failures",
    "formats", "matrices", "options", "probes", "recordings", "scenarios", "tools",
]  # fmt: skip
"""Names of the groups without their prefix. docs/writing-plugins.md says what each of them takes."""
_USED = {
    **dict.fromkeys(("documents", "formats", "options", "recordings", "tools"), "__call__"),
    "explanations": "explain",
}
"""What the objects of a group must have. Those of the other groups are looked at where they are used."""
PREFIX = "kdoctor."
"""The groups are ``kdoctor.checks``, ``kdoctor.probes``, ..."""


def offers(group: Group) -> list[metadata.EntryPoint]:
    """The entry points of a group, none of them imported, in an order that does not depend on the installation."""
    found: metadata.EntryPoints = _on_path(tuple(sys.path)).select(group=PREFIX + group)
    return sorted(found, key=lambda entry: entry.value)


@lru_cache(maxsize=1)
def _on_path(path: tuple[str, ...]) -> Any:  # noqa: ARG001 - what the result depends on
    """All entry points, which are in a file of each installed distribution. Their type depends on Python's version."""
    return metadata.entry_points()


def origin_of(entry: metadata.EntryPoint) -> str:
    """The distribution and the entry point, for messages."""
    return f"{entry.dist.name if entry.dist else 'an unknown distribution'} ({entry.group}: {entry.name})"


def packages_of_plugins() -> frozenset[str]:
    """The packages that third parties' entry points name."""
    named = {entry.value.partition(":")[0].partition(".")[0] for group in get_args(Group) for entry in offers(group)}
    return frozenset(name for name in named if not name.startswith("kdoctor"))


def load(entry: metadata.EntryPoint) -> Any:
    """Import what an entry point names.

    Raises:
        UsageError: it cannot be imported, or is not what its group takes.
    """
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"{origin_of(entry)} cannot be imported from {entry.value}: {fault_of_plugin(error)}",
            hint="Fix, reinstall or remove that plugin.",
        ) from error
    if not hasattr(found, _USED.get(entry.group.removeprefix(PREFIX), "__class__")):
        message = f"{origin_of(entry)}: {entry.value} is {describe_kind(found)}, which {entry.group} does not take"
        raise UsageError(message, hint="Fix, reinstall or remove that plugin.")
    return found


def named(group: Group, taken: Collection[str] = ()) -> dict[str, metadata.EntryPoint]:
    """The entry points of a group by name.

    Args:
        group: the group.
        taken: names of kdoctor's own.

    Raises:
        UsageError: two distributions offer the same name, or one offers a name of kdoctor's.
    """
    found: dict[str, metadata.EntryPoint] = {}
    for entry in offers(group):
        if entry.name in found or entry.name in taken:
            other = origin_of(found[entry.name]) if entry.name in found else "kdoctor"
            message = f"{entry.name} is offered by both {other} and {origin_of(entry)}"
            raise UsageError(message, hint="Rename or remove that plugin.")
        found[entry.name] = entry
    return found


def shipped_files(group: Group, ending: str) -> Iterator[Traversable]:
    """The files with that ending in the packages of a group, in order of name within each.

    Raises:
        UsageError: a package cannot be imported.
    """
    for entry in offers(group):
        files = (file for file in resources.files(load(entry)).iterdir() if file.name.endswith(ending))
        yield from sorted(files, key=lambda file: file.name)
