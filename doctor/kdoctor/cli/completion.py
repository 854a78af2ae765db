"""What a shell may complete after an option."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kdoctor.catalog.load import Catalog


def complete_checklist(incomplete: str) -> list[str]:
    """Names of shipped checklists. If none fits, shells complete paths."""
    return beginning_with(incomplete, _catalog().checklists)


def complete_check(incomplete: str) -> list[str]:
    """Ids of checks, and families."""
    catalog = _catalog()
    return beginning_with(incomplete, [*catalog.families, *catalog.checks])


def complete_scenario(incomplete: str) -> list[str]:
    """Ids of scenarios."""
    return beginning_with(incomplete, _catalog().scenarios)


def _catalog() -> "Catalog":
    from kdoctor.catalog.load import load_catalog  # noqa: PLC0415 - what many commands do not need

    return load_catalog()


def beginning_with(incomplete: str, names: Iterable[str]) -> list[str]:
    """The names that begin with what was typed, each once."""
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]
