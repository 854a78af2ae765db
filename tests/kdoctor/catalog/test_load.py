import errno
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from helpers.cases import cases
from helpers.catalogs import contribute, gpu_check, host_check, probe, scenario, small_catalog, smoke_check
from kdoctor.catalog.load import CatalogError, Contribution, assemble, load_catalog, load_probes
from kdoctor.errors import UsageError
from kdoctor.facts import FactGroup, Gpus, GpuSampling, Host, SmokeRuns
from kdoctor.model import ASSUMPTIONS
from kdoctor.plugins.installed import Group, load, offers

WriteDistribution = Callable[..., None]


@pytest.fixture
def write_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteDistribution:
    """Install a distribution with one module and one entry point in the layout of pip."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name: str, group: str, value: str, code: str) -> None:
        module = value.partition(":")[0]
        (tmp_path / f"{module}.py").write_text(code)
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[{group}]\nmine = {value}\n")
        monkeypatch.delitem(sys.modules, module, raising=False)

    return write


def problems_of(*contributions: Contribution) -> tuple[str, ...]:
    with pytest.raises(CatalogError) as caught:
        assemble(contributions)
    return caught.value.problems


def test_catalog_contains_contributions() -> None:
    catalog = small_catalog()
    assert list(catalog.checks) == sorted(catalog.checks)
    assert list(catalog.scenarios) == ["smoke.baseline"]
    assert catalog.fact_groups == {"host": Host, "gpus": Gpus, "smoke": SmokeRuns, "gpu_sampling": GpuSampling}


def test_closure_puts_prerequisites_first() -> None:
    closure = small_catalog().closure(["host.shared-memory"])
    assert [check.id for check in closure] == ["host.memory", "host.shared-memory"]


def test_callable_and_iterable_are_unpacked() -> None:
    first, second = host_check("host.one"), host_check("host.two")
    catalog = assemble(
        [*contribute(probe()), Contribution(kind="checks", origin="here", value=lambda: iter([first, second]))]
    )
    assert list(catalog.checks) == ["host.one", "host.two"]


@dataclass(frozen=True, kw_only=True)
class Nameless(FactGroup):
    """Facts that forgot their key."""


def broken() -> None:
    raise RuntimeError("no\nluck")


def offered(value: object, kind: Any = "checks") -> list[Contribution]:
    return [Contribution(kind=kind, origin="here", value=value)]


RING = {"host.a": "host.b", "host.b": "host.c", "host.c": "host.a"}
TWICE = [*contribute(host_check(), origin="one (a)"), *contribute(host_check(), origin="two (b)")]


@cases(
    ([*contribute(probe()), *TWICE], "host.memory is defined by both one (a) and two (b)"),
    (contribute(probe(), host_check(requires=["host.nowhere"])), "host.memory requires host.nowhere"),
    (
        contribute(probe(), *(host_check(name, requires=[other]) for name, other in RING.items())),
        "host.a -> host.b -> host.c -> host.a",
    ),
    (contribute(probe(), smoke_check(scenario="smoke.gone")), "smoke.baseline judges scenario smoke.gone"),
    (contribute(probe(), scenario("smoke.unseen")), "smoke.unseen"),
    (contribute(probe("host", Host), gpu_check()), "gpu.free asks for Gpus"),
    (contribute(probe("one", Host), probe("two", Host)), "facts host are provided by both probe one and probe two"),
    (contribute(probe(), host_check(judges=["gpu.count"])), "assumption 'gpu.count'"),
    (contribute(probe(), host_check(severity="fatal")), "here (test): host.memory: Check.severity: expected 'error'"),
    (contribute(replace(probe(), deadline_s="soon")), "here (test): host: Probe.deadline_s: expected a number"),  # type: ignore[arg-type]
    (contribute(replace(probe(), provides=Host)), "here (test): host: Probe.provides: expected a tuple"),  # type: ignore[arg-type]
    (contribute(probe("host", Nameless)), "probe host: Nameless lacks 'group'"),
    *((offered(value), "is not a Check") for value in (3, [3], lambda: 3, None)),
    (offered([]), "here provides nothing"),
    (offered(broken), "here failed: RuntimeError: no luck"),
    (offered("kdoctor.facts", "checklists"), "*.yaml"),
    (offered(3, "checklists"), "here is not a package"),
)
def test_problem_of_a_catalog(contributions: list[Contribution], text: str) -> None:
    (problem,) = problems_of(*contributions)
    assert text in problem


def test_every_assumption_can_be_judged() -> None:
    assert {
        "python", "framework", "sdk", "driver", "libraries", "packages", "flags", "environment", "image",
        "gpus.count", "gpus.model",
    } == ASSUMPTIONS  # fmt: skip
    judged = {name for found in load_catalog().checks.values() for name in found.judges}
    assert judged == ASSUMPTIONS


def test_broken_distribution_is_named(write_distribution: WriteDistribution) -> None:
    write_distribution("acme-checks", "kdoctor.checks", "acme_broken:checks", "import no_such_module_anywhere")
    with pytest.raises(CatalogError) as caught:
        load_catalog()
    text = str(caught.value)
    assert "acme-checks (kdoctor.checks: mine) cannot be imported from acme_broken:checks" in text
    assert "No module named 'no_such_module_anywhere'" in text
    assert caught.value.hint


@pytest.mark.parametrize("group", ["documents", "explanations", "formats", "options", "recordings", "tools"])
def test_object_that_a_group_does_not_take_is_named(write_distribution: WriteDistribution, group: Group) -> None:
    write_distribution("acme-odd", f"kdoctor.{group}", "acme_odd:odd", "odd = 3")
    (entry,) = [one for one in offers(group) if one.name == "mine"]
    with pytest.raises(UsageError, match=rf"acme-odd \(kdoctor.{group}: mine\): acme_odd:odd is the number 3"):
        load(entry)


def test_empty_distribution_is_named(write_distribution: WriteDistribution) -> None:
    write_distribution("acme-empty", "kdoctor.checks", "acme_empty:checks", "checks = ()")
    with pytest.raises(CatalogError, match=r"acme-empty \(kdoctor.checks: mine\)"):
        load_catalog()


def test_installed_catalog_is_valid() -> None:
    catalog = load_catalog()
    assert {"cpu-smoke", "multi-gpu-keras"} <= set(catalog.checklists)
    quick = {name for name, scenario in catalog.scenarios.items() if scenario.tier == "quick"}
    assert quick == {"smoke.baseline", "smoke.uneven-final-batch", "smoke.model-outside-scope", "smoke.silent-features"}


def test_broken_probe_is_reported_by_catalog_and_probes(write_distribution: WriteDistribution) -> None:
    write_distribution("acme-probes", "kdoctor.probes", "acme_probes:PROBES", "import no_such_module_anywhere")
    with pytest.raises(CatalogError, match=r"acme-probes \(kdoctor.probes: mine\) cannot be imported"):
        load_catalog()
    with pytest.raises(CatalogError, match=r"acme-probes \(kdoctor.probes: mine\) cannot be imported"):
        load_probes()


CLASHING_PROBE = """
from helpers.catalogs import probe
from kdoctor.facts import Host
PROBES = (probe("house", Host),)
"""


def test_clashing_probe_is_reported_before_probes_run(write_distribution: WriteDistribution) -> None:
    write_distribution("acme-clash", "kdoctor.probes", "acme_clash:PROBES", CLASHING_PROBE)
    with pytest.raises(CatalogError, match="facts host are provided by both"):
        load_probes()


STRANGE_CHECK = """
from collections.abc import Iterator
from typing import ClassVar
from kdoctor.check import check
from kdoctor.facts import FactGroup
from kdoctor.model import Evidence, Outcome, Severity

class Strange(FactGroup):
    group: ClassVar[str] = "strange"

@check("host.strange", severity=Severity.ERROR)
def strange(facts: Strange) -> Iterator[Outcome]:
    \"\"\"It is not strange.

    Why: it is not known.
    Remedy: fix it.
    Source: this test.
    \"\"\"
    yield Evidence(subject="host", observed="strange")
"""


def test_plugin_asking_for_missing_facts_is_reported(write_distribution: WriteDistribution) -> None:
    write_distribution("acme-strange", "kdoctor.checks", "acme_strange:strange", STRANGE_CHECK)
    with pytest.raises(CatalogError, match=r"host\.strange asks for Strange, which no probe provides"):
        load_catalog()


PLUGIN = """
from helpers.catalogs import host_check
def checks():
    return [host_check("host.added")]
"""


def test_named_plugin_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "added_plugin.py").write_text(PLUGIN)
    assert "host.added" in load_catalog(["added_plugin:checks"]).checks
    file = tmp_path / "json.py"  # a name that Python's library has, too
    file.write_text(PLUGIN)
    assert "host.added" in load_catalog([f"{file}:checks"]).checks


@cases(
    ("json", "expected module:attribute"),
    ("nowhere/checks.py:checks", "nowhere/checks.py"),
    ("no_such_plugin_module:checks", "No module named 'no_such_plugin_module'"),
    ("json:nothing", "json has no nothing"),
    ("json:loads", "failed: TypeError"),
    ("json:lods", "did you mean 'loads'?"),
    ("json:encoder.ESCAPE", "is not a Check, Probe or Scenario"),
)
def test_wrong_plugin_option_is_reported(plugin: str, message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        load_catalog([plugin])
    assert f"--plugin {plugin}" in str(caught.value)
    assert message in str(caught.value)


def test_duplicate_checklist_names_both_origins() -> None:
    twice = [
        Contribution(kind="checklists", origin=origin, value="kdoctor_checklists") for origin in ("one (a)", "two (b)")
    ]
    assert problems_of(*twice)[0] == "checklist cpu-smoke is defined by both one (a) and two (b)"


def test_probes_equal_those_of_the_catalog() -> None:
    assert load_probes() == load_catalog().probes


def test_broken_plugin_is_reported_before_probes_run() -> None:
    with pytest.raises(CatalogError, match="cannot be imported"):
        load_probes(["no.such.module:checks"])


def test_object_is_shown_in_the_problem() -> None:
    assert problems_of(Contribution(kind="checks", origin="here", value=3)) == ("here: the number 3 is not a Check",)


def test_problem_does_not_hide_the_next() -> None:
    problems = problems_of(
        *contribute(probe()),
        Contribution(kind="checks", origin="a", value=[3, host_check("host.one")]),
        Contribution(kind="checks", origin="b", value=host_check("host.one")),
        Contribution(kind="checklists", origin="c", value=3),
        Contribution(kind="checklists", origin="d", value="kdoctor.facts"),
    )
    assert [problem.partition(" ")[0] for problem in problems] == ["a:", "host.one", "c", "d"]


def test_problem_of_a_plugin_option_does_not_hide_the_next() -> None:
    plugins = ["json", "no_such_plugin_module:checks", "json:loads"]
    with pytest.raises(CatalogError) as caught:
        load_catalog(plugins)
    assert len(caught.value.problems) == 3
    for plugin in plugins:
        assert f"--plugin {plugin}" in caught.value.message


@cases((OSError(errno.ENOMEM, "no memory"),), (MemoryError(),))
def test_limit_of_the_system_is_not_the_fault_of_a_plugin(error: Exception) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        assemble([Contribution(kind="checks", origin="here", value=fail)])


def test_folder_of_checks_that_cannot_be_listed_is_a_problem(tmp_path: Path) -> None:
    package = ModuleType("removed")
    package.__spec__ = ModuleSpec(
        "removed", SourceFileLoader("removed", str(tmp_path / "away/__init__.py")), is_package=True
    )
    (problem,) = problems_of(Contribution(kind="checks", origin="here", value=package))
    assert "FileNotFoundError" in problem
