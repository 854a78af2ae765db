from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.catalogs import contribute, gpu_check, host_check, probe, scenario, small_catalog, smoke_check
from kdoctor.engine.catalog import CatalogError, Contribution, assemble, load_catalog, load_probes
from kdoctor.facts import Gpus, GpuSampling, Host, SmokeRun, SmokeRuns
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import ASSUMPTIONS, Assumptions

WriteDistribution = Callable[..., None]


@pytest.fixture
def write_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteDistribution:
    """Installs a distribution with one module and one entry point, as pip would lay it out."""
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


def test_a_catalog_holds_what_was_contributed() -> None:
    catalog = small_catalog()
    assert list(catalog.checks) == sorted(catalog.checks)
    assert list(catalog.scenarios) == ["smoke.baseline"]
    assert catalog.fact_groups == {
        "host": Host,
        "gpus": Gpus,
        "smoke": SmokeRuns,
        "gpu_sampling": GpuSampling,
    }


def test_closure_puts_prerequisites_first() -> None:
    closure = small_catalog().closure(["host.shared-memory"])
    assert [check.id for check in closure] == ["host.memory", "host.shared-memory"]


def test_a_callable_and_an_iterable_are_unpacked() -> None:
    first, second = host_check("host.one"), host_check("host.two")
    catalog = assemble(
        [*contribute(probe()), Contribution(kind="checks", origin="here", value=lambda: iter([first, second]))]
    )
    assert list(catalog.checks) == ["host.one", "host.two"]


def test_a_duplicate_names_both_origins() -> None:
    (problem,) = problems_of(
        *contribute(probe()), *contribute(host_check(), origin="one (a)"), *contribute(host_check(), origin="two (b)")
    )
    assert problem == "host.memory is brought twice: by one (a) and by two (b)"


def test_an_unknown_prerequisite_is_told() -> None:
    (problem,) = problems_of(*contribute(probe(), host_check(requires=["host.nowhere"])))
    assert problem == "host.memory requires host.nowhere, which no plugin brings"


def test_a_circle_is_told_once() -> None:
    problems = problems_of(
        *contribute(
            probe(),
            host_check("host.a", requires=["host.b"]),
            host_check("host.b", requires=["host.c"]),
            host_check("host.c", requires=["host.a"]),
        )
    )
    assert problems == ("checks require each other in a circle: host.a -> host.b -> host.c -> host.a",)


def test_a_check_of_an_unknown_scenario_is_told() -> None:
    (problem,) = problems_of(*contribute(probe(), smoke_check(scenario="smoke.gone")))
    assert problem == "smoke.baseline judges scenario smoke.gone, which no plugin brings"


def test_a_scenario_that_no_check_judges_is_told() -> None:
    (problem,) = problems_of(*contribute(probe(), scenario("smoke.unseen")))
    assert "smoke.unseen is judged by no check" in problem


def test_facts_that_no_probe_provides_are_told() -> None:
    (problem,) = problems_of(*contribute(probe("host", Host), gpu_check()))
    assert problem == "gpu.free asks for Gpus, which no probe provides"


def test_facts_that_two_probes_provide_are_told() -> None:
    (problem,) = problems_of(*contribute(probe("one", Host), probe("two", Host)))
    assert problem == "facts host are provided twice: by probe one and by probe two"


def test_an_assumption_that_does_not_exist_is_told() -> None:
    (problem,) = problems_of(*contribute(probe(), host_check(judges=["gpu.count"])))
    assert "assumption 'gpu.count'" in problem


def test_every_assumption_can_be_judged() -> None:
    assert {
        "python", "framework", "sdk", "driver", "libraries", "packages", "flags", "environment", "image",
        "gpus.count", "gpus.model",
    } == ASSUMPTIONS  # fmt: skip
    judged = {name for found in load_catalog().checks.values() for name in found.judges}
    assert judged == ASSUMPTIONS


@pytest.mark.parametrize("value", [3, [3], lambda: 3, None])
def test_something_else_than_a_check_is_told(value: object) -> None:
    (problem,) = problems_of(Contribution(kind="checks", origin="here", value=value))
    assert "is no Check" in problem


def test_a_plugin_that_brings_nothing_is_told() -> None:
    (problem,) = problems_of(Contribution(kind="checks", origin="here", value=[]))
    assert problem == "here brings nothing"


def test_a_plugin_whose_function_fails_is_told() -> None:
    def broken() -> None:
        raise RuntimeError("no\nluck")

    (problem,) = problems_of(Contribution(kind="checks", origin="here", value=broken))
    assert problem == "here failed: RuntimeError: no luck"


def test_a_package_without_checklists_is_told() -> None:
    (problem,) = problems_of(Contribution(kind="checklists", origin="here", value="kdoctor.facts"))
    assert "holds no *.yaml" in problem


def test_every_problem_is_told_at_once() -> None:
    problems = problems_of(*contribute(probe(), host_check(requires=["host.x"]), smoke_check(scenario="smoke.y")))
    assert len(problems) == 2


def test_a_distribution_that_cannot_be_imported_is_named(write_distribution: WriteDistribution) -> None:
    write_distribution("acme-checks", "kdoctor.checks", "acme_broken:checks", "import no_such_module_anywhere")
    with pytest.raises(CatalogError) as caught:
        load_catalog()
    text = str(caught.value)
    assert "acme-checks (kdoctor.checks: mine) cannot be imported from acme_broken:checks" in text
    assert "No module named 'no_such_module_anywhere'" in text
    assert caught.value.hint


def test_a_distribution_that_brings_nothing_is_told_apart(write_distribution: WriteDistribution) -> None:
    write_distribution("acme-empty", "kdoctor.checks", "acme_empty:checks", "checks = ()")
    with pytest.raises(CatalogError, match=r"acme-empty \(kdoctor.checks: mine\) brings nothing"):
        load_catalog()


def test_the_installed_catalog_holds_together() -> None:
    catalog = load_catalog()
    assert {"cpu-smoke", "multi-gpu-keras"} <= set(catalog.checklists)
    quick = {name for name, scenario in catalog.scenarios.items() if scenario.tier == "quick"}
    assert quick == {"smoke.baseline", "smoke.uneven-final-batch", "smoke.model-outside-scope"}


def test_every_built_in_check_asks_for_what_can_be_had() -> None:
    catalog = load_catalog()
    askable = {*catalog.fact_groups.values(), SmokeRun, Assumptions, VersionMatrix}
    for check in catalog.checks.values():
        assert set(check.facts.values()) <= askable, check.id


def test_a_broken_probe_is_told_when_a_machine_is_to_be_read(write_distribution: WriteDistribution) -> None:
    write_distribution("acme-probes", "kdoctor.probes", "acme_probes:PROBES", "import no_such_module_anywhere")
    with pytest.raises(CatalogError, match=r"acme-probes \(kdoctor.probes: mine\) cannot be imported"):
        _ = load_catalog().probes
    with pytest.raises(CatalogError, match=r"acme-probes \(kdoctor.probes: mine\) cannot be imported"):
        load_probes()


CLASHING_PROBE = """
from helpers.catalogs import probe
from kdoctor.facts import Host
PROBES = (probe("house", Host),)
"""


def test_a_probe_of_facts_that_another_provides_is_told_before_it_is_at_work(
    write_distribution: WriteDistribution,
) -> None:
    write_distribution("acme-clash", "kdoctor.probes", "acme_clash:PROBES", CLASHING_PROBE)
    with pytest.raises(CatalogError, match="facts host are provided twice"):
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

    Why: nobody knows.
    Remedy: mend it.
    Source: this test.
    \"\"\"
    yield Evidence(subject="host", observed="strange")
"""


def test_facts_that_no_probe_provides_are_told_of_a_plugin_when_it_is_loaded(
    write_distribution: WriteDistribution,
) -> None:
    write_distribution("acme-strange", "kdoctor.checks", "acme_strange:strange", STRANGE_CHECK)
    with pytest.raises(CatalogError, match=r"host\.strange asks for Strange, which no probe provides"):
        load_catalog()


PLUGIN = """
from helpers.catalogs import host_check
def checks():
    return [host_check("host.added")]
"""


def test_a_plugin_is_added_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "added_plugin.py").write_text(PLUGIN)
    assert "host.added" in load_catalog(["added_plugin:checks"]).checks


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        ("json", "expected module:attribute"),
        ("no_such_plugin_module:checks", "No module named 'no_such_plugin_module'"),
        ("json:nothing", "has no attribute 'nothing'"),
        ("json:loads", "failed: TypeError"),
        ("json:encoder.ESCAPE", "is no Check, Probe or Scenario"),
    ],
)
def test_a_wrong_plugin_option_is_told(plugin: str, message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        load_catalog([plugin])
    assert f"--plugin {plugin}" in str(caught.value)
    assert message in str(caught.value)


def test_a_checklist_that_two_packages_ship_is_told() -> None:
    twice = [
        Contribution(kind="checklists", origin=origin, value="kdoctor_checklists") for origin in ("one (a)", "two (b)")
    ]
    assert problems_of(*twice)[0] == "checklist cpu-smoke is brought twice: by one (a) and by two (b)"


def test_what_is_no_package_is_told() -> None:
    (problem,) = problems_of(Contribution(kind="checklists", origin="here", value=3))
    assert problem.startswith("here is no package with checklists: ")


def test_the_probes_alone_are_those_of_the_whole_catalog() -> None:
    assert load_probes() == load_catalog().probes


def test_a_plugin_that_cannot_be_imported_is_told_before_any_probe_is_at_work() -> None:
    with pytest.raises(CatalogError, match="cannot be imported"):
        load_probes(["no.such.module:checks"])
