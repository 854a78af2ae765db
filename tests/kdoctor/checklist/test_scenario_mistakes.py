from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from helpers.cases import cases
from helpers.catalogs import host_check, scenario, small_catalog, smoke_check
from helpers.checklist_texts import CHECKS, FULL, HEAD, NO_SCENARIOS, ONLY_BASELINE, REASON, problems_of, read
from kdoctor.catalog.load import Catalog


@pytest.fixture
def catalog() -> Catalog:
    return small_catalog()


def test_missing_kind_of_scenario_needs_a_reason(tmp_path: Path, catalog: Catalog, screen: SnapshotAssertion) -> None:
    found = problems_of(tmp_path, catalog, HEAD + CHECKS)
    assert "".join(f"{problem}\n" for problem in found) == screen
    assert ["smoke.baseline" in problem for problem in found] == [True, False, False]
    assert read(tmp_path, catalog, HEAD + CHECKS + NO_SCENARIOS).without["baseline"] == REASON


def assert_reported(found: list[str], place: str, named: list[str]) -> None:
    (problem,) = found
    assert problem.startswith(f"{place}: ")
    assert [name for name in named if name not in problem] == []


@cases(
    (FULL.replace("without: {", "without: {baseline: too slow, "), "16:11", ["baseline"]),
    (FULL.replace("without: {edge-case", "without: {edge-cases"), "16:11", ["edge-cases", "edge-case"]),
    (FULL.replace("without: {", "without: {gpu.free: busy, "), "16:11", ["gpu.free", "extends"]),
    (FULL.replace("edge-case: none was written yet", "edge-case: ' '"), "16:22", ["edge-case"]),
    (FULL.replace("fix_forward: [host]", "investigate: [severity:eror]"), "22:17", ["severity:eror", "severity:error"]),
)
def test_mistake_in_without_or_rollback_is_reported(
    tmp_path: Path, catalog: Catalog, text: str, place: str, named: list[str]
) -> None:
    assert_reported(problems_of(tmp_path, catalog, text), place, named)


def test_scenario_without_a_judging_check_is_reported(tmp_path: Path, catalog: Catalog) -> None:
    text = HEAD + CHECKS + "scenarios: [{id: smoke.baseline, kind: baseline, replicas: 2, expect: x}]" + ONLY_BASELINE
    assert_reported(problems_of(tmp_path, catalog, text), "7:18", ["smoke.baseline", "'checks'"])


def test_check_whose_scenario_is_not_listed_is_reported(tmp_path: Path, catalog: Catalog) -> None:
    text = HEAD + CHECKS + "  - id: smoke.baseline" + NO_SCENARIOS
    assert_reported(problems_of(tmp_path, catalog, text), "7:9", ["smoke.baseline", "'scenarios'"])


def test_scenario_of_a_prerequisite_is_needed_too(tmp_path: Path) -> None:
    catalog = small_catalog(host_check("host.after", requires=["smoke.baseline"]))
    text = HEAD + "checks: [{id: host.after}]" + NO_SCENARIOS
    assert_reported(problems_of(tmp_path, catalog, text), "5:15", ["smoke.baseline", "'scenarios'"])


SCENARIO = HEAD + "checks: [{id: smoke.baseline}]\nscenarios:\n  - "


@cases(
    ("{id: smoke.base, kind: baseline, replicas: 2, expect: x}", "7:10", ["smoke.base", "smoke.baseline"]),
    (
        "{id: smoke.baseline, kind: edge-case, replicas: 2, expect: x}",
        "7:32",
        ["smoke.baseline", "baseline", "edge-case"],
    ),
    ("{id: smoke.baseline, kind: baseline, replicas: gpu, expect: x}", "7:52", ["replicas", "gpus", "gpu", "1", "64"]),
    ("{id: smoke.baseline, kind: baseline, replicas: true, expect: x}", "7:52", ["replicas", "gpus", "1", "64"]),
    (
        "{id: smoke.baseline, kind: baseline, strategy: miror, replicas: 2, expect: x}",
        "7:52",
        ["strategy", "miror", "mirrored"],
    ),
    (
        "{id: smoke.baseline, kind: baseline, strategy: tpu, replicas: 2, expect: x}",
        "7:52",
        ["smoke.baseline", "mirrored", "tpu"],
    ),
    ("{id: smoke.baseline, kind: baseline, replicas: 2}", "7:5", ["expect"]),
)
def test_mistake_in_a_scenario_is_reported(
    tmp_path: Path, catalog: Catalog, entry: str, place: str, named: list[str]
) -> None:
    assert_reported(problems_of(tmp_path, catalog, SCENARIO + entry), place, named)


def test_scenario_listed_twice_is_reported(tmp_path: Path) -> None:
    catalog = small_catalog(scenario("smoke.edge", "edge-case"), smoke_check("smoke.edge", "smoke.edge"))
    entry = "{id: smoke.baseline, kind: baseline, replicas: 2, expect: x}"
    found = problems_of(tmp_path, catalog, f"{SCENARIO}{entry}\n  - {entry}")
    assert_reported(found, "8:10", ["smoke.baseline", "7"])
