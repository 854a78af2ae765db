"""What a shell may complete after an option."""

from collections.abc import Iterable

from kdoctor.catalog.load import load_catalog


def complete_checklist(incomplete: str) -> list[str]:
    """Names of shipped checklists. If none fits, shells complete paths."""
    return beginning_with(incomplete, load_catalog().checklists)


def complete_check(incomplete: str) -> list[str]:
    """Ids of checks, and families."""
    catalog = load_catalog()
    return beginning_with(incomplete, [*catalog.families, *catalog.checks])


def complete_scenario(incomplete: str) -> list[str]:
    """Ids of scenarios."""
    return beginning_with(incomplete, load_catalog().scenarios)


def beginning_with(incomplete: str, names: Iterable[str]) -> list[str]:
    """The names that begin with what was typed, each once."""
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]
