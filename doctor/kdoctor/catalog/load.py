"""Checks, probes, scenarios and checklists of the installed plugins.

Built-in ones use the same entry points as those of third parties. All are validated when they are loaded, so that a
broken plugin is an error and not a missing check.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from importlib import resources
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any, Literal, TypeVar

from kdoctor.catalog.collect import collect
from kdoctor.check import Check
from kdoctor.documents import fitted
from kdoctor.errors import UsageError, did_you_mean, fault_of_plugin
from kdoctor.facts import FactGroup, GpuSampling, SmokeRun, SmokeRuns
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import ASSUMPTIONS, Assumptions, family_order
from kdoctor.plugins.installed import Traversable, load, offers, origin_of
from kdoctor.probes.probe import Probe
from kdoctor.records import record
from kdoctor.smoke.scenario import Scenario
from kdoctor.text.kinds import describe_kind

Kind = Literal["checks", "facts", "probes", "scenarios", "checklists"]
KINDS: tuple[Kind, ...] = ("checks", "facts", "probes", "scenarios", "checklists")
INSERTED = ".insert.yaml"
"""How the names of files end whose lines are inserted into the shipped checklist of that name."""
INSERT_HERE = b"  # Extensions insert their checks here.\n"
"""The line of a shipped checklist before which they are inserted."""

Item = TypeVar("Item", Check, Probe, Scenario)


class CatalogError(UsageError):
    """An installed plugin cannot be imported, or plugins contradict each other."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(
            "could not load plugins:\n" + "\n".join(f"  - {problem}" for problem in problems),
            hint="Fix, reinstall or remove the plugins listed above. No check was run.",
        )
        self.problems = tuple(problems)


@record
class Contribution:
    """What one plugin provides, as it was loaded."""

    kind: Kind
    origin: str
    """Distribution and entry point, or the option."""
    value: object
    """A check, probe, scenario or type of facts, an iterable of them, or a callable that returns either. For checks
    also a package of the layout that ``collect`` describes; for checklists always a package."""


@record
class Catalog:
    """Everything that a run can use."""

    checks: Mapping[str, Check]
    """By id, sorted."""
    probes: tuple[Probe, ...]
    scenarios: Mapping[str, Scenario]
    """By id."""
    checklists: Mapping[str, Traversable]
    """Files of the shipped checklists, by name."""
    fact_groups: Mapping[str, type[FactGroup]]
    """Types of the groups of facts, by their key in a snapshot."""
    insertions: Mapping[str, Sequence[Traversable]] = field(default_factory=dict)
    """Files with checks that plugins insert into a shipped checklist, by its name."""

    @property
    def families(self) -> tuple[str, ...]:
        """The families of its checks, in the order of a report."""
        return tuple(sorted({check.family for check in self.checks.values()}, key=family_order))

    def shipped_checklist(self, name: str) -> bytes:
        """The text of a shipped checklist, with what plugins insert.

        Raises:
            KeyError: no shipped checklist has that name.
        """
        inserted = b"".join(file.read_bytes() for file in self.insertions.get(name, ()))
        return self.checklists[name].read_bytes().replace(INSERT_HERE, inserted)

    def closure(self, ids: Iterable[str]) -> tuple[Check, ...]:
        """The checks with these ids and all their prerequisites, each after its prerequisites."""
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
    """Load the installed plugins and those that are named.

    Args:
        plugins: ``module:attribute`` or ``file.py:attribute`` of further checks, probes or scenarios.

    Raises:
        CatalogError: with every problem that was found.
    """
    problems: list[str] = []
    return assemble(_contributions(KINDS, plugins, problems), problems)


def load_probes(plugins: Sequence[str] = ()) -> tuple[Probe, ...]:
    """Only the probes, so that they can run while :func:`load_catalog` imports the checks.

    Args:
        plugins: as for :func:`load_catalog`.

    Raises:
        CatalogError: with every problem that was found.
    """
    problems: list[str] = []
    probes, _ = _collect_probes(_contributions(["probes"], plugins, problems), problems)
    if problems:
        raise CatalogError(problems)
    return probes


def assemble(contributions: Sequence[Contribution], problems: Iterable[str] = ()) -> Catalog:
    """Validate what was loaded and make a catalog of it.

    Args:
        contributions: what was loaded.
        problems: what was found while it was loaded.

    Raises:
        CatalogError: with every problem that was found.
    """
    problems = list(problems)
    checks = _collect(contributions, "checks", Check, lambda check: check.id, problems)
    scenarios = _collect(contributions, "scenarios", Scenario, lambda scenario: scenario.id, problems)
    checklists, insertions = _collect_checklists(contributions, problems)
    probes, fact_groups = _collect_probes(contributions, problems)
    # References to a plugin that did not load are not reported as further mistakes.
    problems = problems or [*_broken_references(checks, scenarios, fact_groups.values()), *_cycles(checks)]
    if problems:
        raise CatalogError(problems)
    return Catalog(
        checks=dict(sorted(checks.items())),
        probes=probes,
        scenarios=scenarios,
        checklists=checklists,
        fact_groups={name: group for name, group in fact_groups.items() if group.in_snapshots},
        insertions=insertions,
    )


def _contributions(kinds: Iterable[Kind], plugins: Sequence[str], problems: list[str]) -> list[Contribution]:
    found: list[Contribution] = []
    for kind in kinds:
        for entry in offers(kind):
            try:
                found.append(Contribution(kind=kind, origin=origin_of(entry), value=load(entry)))
            except UsageError as error:
                problems.append(error.message)
    return [*found, *_from_options(plugins, problems)]


def _from_options(plugins: Sequence[str], problems: list[str]) -> Iterator[Contribution]:
    kinds: tuple[tuple[Kind, type], ...] = (("checks", Check), ("probes", Probe), ("scenarios", Scenario))
    for plugin in plugins:
        origin = f"--plugin {plugin}"
        module, _, attribute = plugin.partition(":")
        if not (module and attribute):
            problems.append(f"{origin}: expected module:attribute or FILE.py:attribute, for example my_checks:checks")
            continue
        try:
            value: object = _of_file(module) if module.endswith(".py") else importlib.import_module(module)
            for name in attribute.split("."):
                if not hasattr(value, name):
                    raise AttributeError(f"{module} has no {attribute}{did_you_mean(name, dir(value))}")  # noqa: TRY301
                value = getattr(value, name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
            problems.append(f"{origin} cannot be imported: {fault_of_plugin(error)}")
            continue
        for item in _items(value, origin, problems):
            matching: list[Kind] = [kind for kind, wanted in kinds if isinstance(item, wanted)]
            if not matching:
                problems.append(f"{origin}: {describe_kind(item)} is not a Check, Probe or Scenario")
            for kind in matching:
                yield Contribution(kind=kind, origin=origin, value=item)


def _of_file(file: str) -> ModuleType:
    """The module in a file, imported once."""
    name = f"kdoctor_plugin_{os.path.abspath(file)}"  # noqa: PTH100 - the name of a module
    if name not in sys.modules:
        spec = spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} is not a Python file")
        module = module_from_spec(spec)
        spec.loader.exec_module(sys.modules.setdefault(name, module))
    return sys.modules[name]


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
        for item in _items(contribution.value, origin, problems):
            if not isinstance(item, wanted):
                problems.append(f"{origin}: {describe_kind(item)} is not a {wanted.__name__}")
                continue
            name = name_of(item)
            if name in found:
                problems.append(f"{name} is defined by both {origins[name]} and {origin}")
                continue
            try:
                found[name], origins[name] = fitted(item), origin
            except TypeError as error:
                problems.append(f"{origin}: {name}: {error}")
    return found


def _items(value: object, origin: str, problems: list[str]) -> list[Any]:
    """One value, an iterable of values, a callable that returns either, or a package of checks, as a list."""
    try:
        if isinstance(value, ModuleType):
            value = collect(value)
        if callable(value) and not isinstance(value, type):
            value = value()
        items = list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
        problems.append(f"{origin} failed: {fault_of_plugin(error)}")
        return []
    if not items:
        problems.append(f"{origin} provides nothing")
    return items


def _collect_checklists(
    contributions: Iterable[Contribution], problems: list[str]
) -> tuple[dict[str, Traversable], dict[str, list[Traversable]]]:
    """The shipped checklists, and what is inserted into them, by name."""
    found: dict[str, Traversable] = {}
    insertions: dict[str, list[Traversable]] = {}
    origins: dict[str, str] = {}
    for contribution in contributions:
        if contribution.kind != "checklists":
            continue
        origin, package = contribution.origin, contribution.value
        try:
            files = list(resources.files(package).iterdir())  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001 - an entry point may name anything
            problems.append(f"{origin} is not a package with checklists: {fault_of_plugin(error)}")
            continue
        documents = {file.name: file for file in files if file.name.endswith(".yaml")}
        if not documents:
            problems.append(f"{origin} provides nothing: its package contains no *.yaml")
        for name in sorted(documents):
            if name.endswith(INSERTED):
                insertions.setdefault(name.removesuffix(INSERTED), []).append(documents[name])
        shipped = {name.removesuffix(".yaml"): file for name, file in documents.items() if not name.endswith(INSERTED)}
        for name in sorted(shipped):
            if name in found:
                problems.append(f"checklist {name} is defined by both {origins[name]} and {origin}")
            else:
                found[name], origins[name] = shipped[name], origin
    return found, insertions


def _collect_probes(
    contributions: Iterable[Contribution], problems: list[str]
) -> tuple[tuple[Probe, ...], dict[str, type[FactGroup]]]:
    """The probes, and the groups of facts that they, the smoke trainings and plugins provide."""
    probes = tuple(_collect(contributions, "probes", Probe, lambda probe: probe.name, problems).values())
    groups: dict[str, type[FactGroup]] = {SmokeRuns.group: SmokeRuns, GpuSampling.group: GpuSampling}
    providers = dict.fromkeys(groups, "the smoke trainings")
    provided = [(group, f"probe {probe.name}") for probe in probes for group in probe.provides]
    for contribution in contributions:
        if contribution.kind == "facts":
            items = _items(contribution.value, contribution.origin, problems)
            provided += [(group, contribution.origin) for group in items if _is_group(group, contribution, problems)]
    for group, provider in provided:
        name = getattr(group, "group", None)
        if not isinstance(name, str):
            problems.append(f"{provider}: {group.__name__} lacks 'group', its key in a snapshot")
        elif name in groups:
            problems.append(f"facts {name} are provided by both {providers[name]} and {provider}")
        else:
            groups[name], providers[name] = group, provider
    return probes, groups


def _is_group(item: object, contribution: Contribution, problems: list[str]) -> bool:
    if isinstance(item, type) and issubclass(item, FactGroup):
        return True
    problems.append(f"{contribution.origin}: {describe_kind(item)} is not a type of facts")
    return False


def _broken_references(
    checks: Mapping[str, Check], scenarios: Mapping[str, Scenario], groups: Iterable[type[FactGroup]]
) -> Iterator[str]:
    available = {*groups, SmokeRun, Assumptions, VersionMatrix}
    for check in checks.values():
        for prerequisite in check.requires:
            if prerequisite not in checks:
                yield f"{check.id} requires {prerequisite}, which no plugin provides"
        if check.scenario is not None and check.scenario not in scenarios:
            yield f"{check.id} judges scenario {check.scenario}, which no plugin provides"
        for assumption in sorted(set(check.judges) - ASSUMPTIONS):
            yield f"{check.id} judges assumption {assumption!r}; expected one of {', '.join(sorted(ASSUMPTIONS))}"
        for wanted in check.facts.values():
            if wanted not in available:
                yield f"{check.id} asks for {wanted.__name__}, which no probe provides"
    judged = {check.scenario for check in checks.values()}
    for scenario in scenarios.values():
        if scenario.id not in judged:
            yield f"no check judges scenario {scenario.id}"


def _cycles(checks: Mapping[str, Check]) -> Iterator[str]:
    """Every cycle of prerequisites, once."""
    done: set[str] = set()

    def visit(check_id: str, path: tuple[str, ...]) -> Iterator[str]:
        if check_id in path:
            yield f"checks require each other: {' -> '.join((*path[path.index(check_id) :], check_id))}"
        elif check_id in checks and check_id not in done:
            for prerequisite in checks[check_id].requires:
                yield from visit(prerequisite, (*path, check_id))
            done.add(check_id)

    for check_id in checks:
        yield from visit(check_id, ())
