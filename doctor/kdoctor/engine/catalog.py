"""Everything that a run can use: checks, probes, scenarios and checklists, from the installed plugins.

The built-in ones come in by the same entry points as a third party's. What a plugin brings is
validated when it is loaded, so that a mistake is told at once and never shows up as a missing check.
Probes are loaded when they are asked for: who reads a checklist needs none.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from kdoctor.check import Check
from kdoctor.errors import UsageError
from kdoctor.facts import FactGroup, GpuSampling, SmokeRun, SmokeRuns
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import ASSUMPTIONS, Assumptions
from kdoctor.probes.probe import Probe
from kdoctor.smoke.scenario import Scenario

if TYPE_CHECKING:
    from kdoctor.probes.probe import Probe

    if sys.version_info >= (3, 11):  # the class moved, and nothing needs it at run time
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable

Kind = Literal["checks", "probes", "scenarios", "checklists"]
KINDS: tuple[Kind, ...] = ("checks", "probes", "scenarios", "checklists")
GROUP_PREFIX = "kdoctor."
"""The entry-point groups are ``kdoctor.checks``, ``kdoctor.probes``, ..."""

Installed = Mapping[Kind, Sequence[metadata.EntryPoint]]
"""The entry points of each kind."""

Item = TypeVar("Item", Check, Probe, Scenario)


class CatalogError(UsageError):
    """An installed plugin is broken: it cannot be imported, or what it brings does not hold together."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(
            "kdoctor's plugins do not hold together:\n" + "\n".join(f"  - {problem}" for problem in problems),
            hint="Mend, reinstall or uninstall the distribution that is named; no check was run.",
        )
        self.problems = tuple(problems)


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """What one plugin brings, as it was loaded."""

    kind: Kind
    origin: str
    """Who brings it: distribution and entry point, or the option."""
    value: object
    """A check, probe or scenario, an iterable of them, or a callable that returns either; for
    checklists a package."""


@dataclass(frozen=True, kw_only=True)
class Instruments:
    """What reads a machine."""

    probes: tuple[Probe, ...]
    fact_groups: Mapping[str, type[FactGroup]]
    """Key in a snapshot to the group's type."""


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """Everything that a run can use."""

    checks: Mapping[str, Check]
    """By id, in order of family and id."""
    scenarios: Mapping[str, Scenario]
    """By id."""
    checklists: Mapping[str, Traversable]
    """Name of a shipped checklist to its file."""
    load_instruments: Callable[[], Instruments]

    @cached_property
    def instruments(self) -> Instruments:
        """What reads the machine, loaded when it is first asked for.

        Raises:
            CatalogError: a plugin that brings probes is broken, or two do not go together.
        """
        return self.load_instruments()

    @property
    def probes(self) -> tuple[Probe, ...]:
        """What reads the machine, each group of facts by one."""
        return self.instruments.probes

    @property
    def fact_groups(self) -> Mapping[str, type[FactGroup]]:
        """Key in a snapshot to the group's type."""
        return self.instruments.fact_groups

    def closure(self, ids: Iterable[str]) -> tuple[Check, ...]:
        """The checks of those ids with all their prerequisites, each before what requires it."""
        found: dict[str, Check] = {}

        def visit(check_id: str) -> None:
            if check_id not in found:
                for prerequisite in self.checks[check_id].requires:
                    visit(prerequisite)
                found[check_id] = self.checks[check_id]

        for check_id in ids:
            visit(check_id)
        return tuple(found.values())


def load_catalog(plugins: Sequence[str] = ()) -> Catalog:
    """Load the plugins that are installed, and those that are named.

    Args:
        plugins: ``module:attribute`` of further checks, probes or scenarios.

    Raises:
        CatalogError: a plugin cannot be imported, or what the plugins bring does not hold together.
    """
    problems: list[str] = []
    installed = _installed()
    named = list(_from_options(plugins, problems))
    contributions = [*_from_entry_points(installed, ("checks", "scenarios", "checklists"), problems), *named]
    return _assemble(contributions, problems, lambda: _load_instruments(installed, named))


def load_probes(plugins: Sequence[str] = ()) -> tuple[Probe, ...]:
    """The probes alone, so that they can be at work while :func:`load_catalog` reads what the checks are.

    Args:
        plugins: as for :func:`load_catalog`.

    Raises:
        CatalogError: a plugin that brings probes cannot be imported, or two bring one probe or one group of facts.
    """
    problems: list[str] = []
    named = list(_from_options(plugins, problems))
    return _load_instruments(_installed(), named, problems).probes


def assemble(contributions: Iterable[Contribution]) -> Catalog:
    """Make a catalog of what was loaded, and validate all of it.

    Raises:
        CatalogError: with every problem that was found.
    """
    loaded = list(contributions)
    catalog = _assemble(loaded, [], lambda: _assemble_instruments(loaded, []))
    # Asked for, so that they are validated, too.
    _ = catalog.instruments
    return catalog


def _installed() -> Installed:
    """The entry points of ours in one walk over all installed distributions."""
    entries = metadata.entry_points()
    return {
        kind: tuple(sorted(entries.select(group=GROUP_PREFIX + kind), key=lambda entry: entry.value)) for kind in KINDS
    }


def _load_instruments(installed: Installed, named: Iterable[Contribution], problems: Sequence[str] = ()) -> Instruments:
    found = list(problems)
    return _assemble_instruments([*_from_entry_points(installed, ("probes",), found), *named], found)


def _from_entry_points(installed: Installed, kinds: Sequence[Kind], problems: list[str]) -> Iterable[Contribution]:
    for kind in kinds:
        for entry in installed[kind]:
            origin = f"{entry.dist.name if entry.dist else 'an unknown distribution'} ({entry.group}: {entry.name})"
            try:
                value = entry.load()
            except Exception as error:  # noqa: BLE001 - whatever a plugin's import raises belongs in the message
                problems.append(f"{origin} cannot be imported from {entry.value}: {_words(error)}")
                continue
            yield Contribution(kind=kind, origin=origin, value=value)


def _from_options(plugins: Sequence[str], problems: list[str]) -> Iterable[Contribution]:
    if not plugins:
        return
    for plugin in plugins:
        origin = f"--plugin {plugin}"
        module, colon, attribute = plugin.partition(":")
        if not (module and colon and attribute):
            problems.append(f"{origin}: expected module:attribute, for example my_checks:checks")
            continue
        try:
            value: object = importlib.import_module(module)
            for name in attribute.split("."):
                value = getattr(value, name)
        except Exception as error:  # noqa: BLE001 - whatever a plugin's import raises belongs in the message
            problems.append(f"{origin} cannot be imported: {_words(error)}")
            continue
        try:
            items = _items(value)
        except Exception as error:  # noqa: BLE001 - the plugin's own function
            problems.append(f"{origin} failed: {_words(error)}")
            continue
        kinds: tuple[tuple[Kind, type], ...] = (("checks", Check), ("probes", Probe), ("scenarios", Scenario))
        for item in items:
            fitting: list[Kind] = [kind for kind, wanted in kinds if isinstance(item, wanted)]
            if not fitting:
                problems.append(f"{origin}: {_kind_of(item)} is no Check, Probe or Scenario")
            for kind in fitting:
                yield Contribution(kind=kind, origin=origin, value=item)


def _assemble(
    contributions: Iterable[Contribution], problems: list[str], load_instruments: Callable[[], Instruments]
) -> Catalog:
    loaded = list(contributions)
    checks = _collect(loaded, "checks", Check, lambda check: check.id, problems)
    scenarios = _collect(loaded, "scenarios", Scenario, lambda scenario: scenario.id, problems)
    checklists = _collect_checklists(loaded, problems)
    if problems:
        # What is missing because of these would be told as so many mistakes of others.
        raise CatalogError(problems)
    catalog = Catalog(
        checks=dict(sorted(checks.items())),
        scenarios=scenarios,
        checklists=checklists,
        load_instruments=load_instruments,
    )
    problems += _problems_of_checks(checks, scenarios)
    problems += _problems_of_facts(catalog)
    problems += _problems_of_scenarios(checks, scenarios)
    if problems:
        raise CatalogError(problems)
    return catalog


def _assemble_instruments(contributions: Iterable[Contribution], problems: list[str]) -> Instruments:
    probes = _collect(contributions, "probes", Probe, lambda probe: probe.name, problems)
    fact_groups = _fact_groups(probes.values(), problems)
    if problems:
        raise CatalogError(problems)
    return Instruments(probes=tuple(probes.values()), fact_groups=fact_groups)


def _collect(
    contributions: Iterable[Contribution],
    kind: Kind,
    wanted: type[Item],
    name_of: Callable[[Item], str],
    problems: list[str],
) -> dict[str, Item]:
    """The contributed values of one kind, by name."""
    found: dict[str, Item] = {}
    origins: dict[str, str] = {}
    for contribution in contributions:
        if contribution.kind != kind:
            continue
        origin = contribution.origin
        try:
            items = _items(contribution.value)
        except Exception as error:  # noqa: BLE001 - the plugin's own function
            problems.append(f"{origin} failed: {_words(error)}")
            continue
        if not items:
            problems.append(f"{origin} brings nothing")
        for item in items:
            if not isinstance(item, wanted):
                problems.append(f"{origin}: {_kind_of(item)} is no {wanted.__name__}")
            elif name_of(item) in found:
                name = name_of(item)
                problems.append(f"{name} is brought twice: by {origins[name]} and by {origin}")
            else:
                found[name_of(item)] = item
                origins[name_of(item)] = origin
    return found


def _items(value: object) -> list[Any]:
    """One value, an iterable of values, or a callable that returns either, as a list."""
    if callable(value):
        return _items(value())
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]


def _collect_checklists(contributions: Iterable[Contribution], problems: list[str]) -> dict[str, Traversable]:
    found: dict[str, Traversable] = {}
    origins: dict[str, str] = {}
    for contribution in contributions:
        if contribution.kind != "checklists":
            continue
        origin, package = contribution.origin, contribution.value
        try:
            files = list(resources.files(package).iterdir())  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001 - anything may stand in an entry point
            problems.append(f"{origin} is no package with checklists: {_words(error)}")
            continue
        shipped = {file.name.removesuffix(".yaml"): file for file in files if file.name.endswith(".yaml")}
        if not shipped:
            problems.append(f"{origin} brings nothing: its package holds no *.yaml")
        for name in sorted(shipped):
            if name in found:
                problems.append(f"checklist {name} is brought twice: by {origins[name]} and by {origin}")
                continue
            found[name], origins[name] = shipped[name], origin
    return found


def _fact_groups(probes: Iterable[Probe], problems: list[str]) -> dict[str, type[FactGroup]]:
    """Each group by its key, with those that the smoke trainings fill."""
    groups: dict[str, type[FactGroup]] = {SmokeRuns.group: SmokeRuns, GpuSampling.group: GpuSampling}
    providers = dict.fromkeys(groups, "the smoke trainings")
    for probe in probes:
        for group in probe.provides:
            if group.group in groups:
                problems.append(
                    f"facts {group.group} are provided twice: by {providers[group.group]} and by probe {probe.name}"
                )
                continue
            groups[group.group] = group
            providers[group.group] = f"probe {probe.name}"
    return groups


def _problems_of_checks(checks: Mapping[str, Check], scenarios: Mapping[str, Scenario]) -> Iterable[str]:
    for check in checks.values():
        for prerequisite in check.requires:
            if prerequisite not in checks:
                yield f"{check.id} requires {prerequisite}, which no plugin brings"
        if check.scenario is not None and check.scenario not in scenarios:
            yield f"{check.id} judges scenario {check.scenario}, which no plugin brings"
        for assumption in sorted(set(check.judges) - ASSUMPTIONS):
            yield f"{check.id} judges assumption {assumption!r}, which is none of {', '.join(sorted(ASSUMPTIONS))}"
    yield from _circles(checks)


def _problems_of_facts(catalog: Catalog) -> Iterable[str]:
    """Facts that checks ask for and no probe provides."""
    try:
        groups = catalog.fact_groups.values()
    except CatalogError as error:
        yield from error.problems
        return
    askable = {*groups, SmokeRun, Assumptions, VersionMatrix}
    for check in catalog.checks.values():
        for wanted in check.facts.values():
            if wanted not in askable:
                yield f"{check.id} asks for {wanted.__name__}, which no probe provides"


def _circles(checks: Mapping[str, Check]) -> Iterable[str]:
    """Every circle of prerequisites, told once."""
    done: set[str] = set()

    def visit(check_id: str, path: tuple[str, ...]) -> Iterable[str]:
        if check_id in path:
            yield f"checks require each other in a circle: {' -> '.join((*path[path.index(check_id) :], check_id))}"
        elif check_id in checks and check_id not in done:
            for prerequisite in checks[check_id].requires:
                yield from visit(prerequisite, (*path, check_id))
            done.add(check_id)

    for check_id in checks:
        yield from visit(check_id, ())


def _problems_of_scenarios(checks: Mapping[str, Check], scenarios: Mapping[str, Scenario]) -> Iterable[str]:
    judged = {check.scenario for check in checks.values()}
    for scenario in scenarios.values():
        if scenario.id not in judged:
            yield f"scenario {scenario.id} is judged by no check, so its outcome would go unseen"


def _kind_of(item: object) -> str:
    return f"{item!r:.60} (a {type(item).__name__})"


def _words(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
