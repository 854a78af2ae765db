from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from helpers.cases import cases
from helpers.catalogs import scenario, small_catalog, smoke_check
from helpers.checklist_texts import CHECKS, FULL, HEAD, NO_SCENARIOS, ONLY_BASELINE, REASON, problems_of, read
from kdoctor.catalog.load import Catalog, load_catalog
from kdoctor.checklist.problems import ChecklistError


@pytest.fixture
def catalog() -> Catalog:
    return small_catalog()


MISTAKES: tuple[tuple[str | bytes, str, list[str]], ...] = (
    # the checklist, line and column of the problem, and what the message names
    (HEAD + CHECKS + "chekcs: 1", "7:1", ["chekcs", "checks"]),
    (HEAD + "checks: [{id: host.memry}]", "5:15", ["host.memry", "host.memory"]),
    (HEAD + "checks: [{id: free}]", "5:15", ["free", "gpu.free"]),
    (HEAD + "checks: [{id: host.memory, severity: eror}]", "5:38", ["severity", "eror", "error"]),
    (HEAD + "checks: [{id: host.memory, parameters: {leas_gib: 1}}]", "5:41", ["host.memory", "leas_gib", "least_gib"]),
    (HEAD + "checks: [{id: gpu.free, parameters: {x: 1}}]", "5:38", ["gpu.free", "x"]),
    (HEAD + "checks: [{id: host.memory, parameters: {least_gib: lots}}]", "5:52", ["least_gib", "host.memory", "lots"]),
    (
        HEAD + "checks: [{id: host.memory, parameters: {level: afar}}]",
        "5:48",
        ["level", "host.memory", "afar", "far", "near"],
    ),
    (HEAD + "checks: [{id: host.memory, parameters: {least_gib: .nan}}]", "5:52", ["number", ".nan"]),
    (HEAD + CHECKS + "owner: me", "7:1", ["owner", "4"]),
    (HEAD + CHECKS + "  - id: host.memory", "7:9", ["host.memory", "6"]),
    (HEAD, "1:1", ["missing", "checks"]),
    (HEAD + "checks:", "5:8", ["checks", "empty"]),
    (HEAD + "checks: []", "5:9", ["checks", "empty"]),
    (HEAD + "checks: [host.memory]", "5:10", ["checks", "host.memory"]),
    (HEAD + CHECKS + "assumptions: {python: 3.10}", "7:23", ["python", "3.1", "3.10"]),
    (HEAD + CHECKS + "assumptions: {environment: {TF_X: true}}", "7:35", ["TF_X", "true"]),
    (HEAD + CHECKS + "assumptions: {python: '3.11'}", "7:23", ["python", "3.11", ">=3.10,<3.14", "==3.11", "~=3.11"]),
    (HEAD + CHECKS + "assumptions: {packages: {keras: ''}}", "7:33", ["keras", ">=0"]),
    (HEAD + CHECKS + "assumptions: {packages: {tf_keras: '>1', tf-keras: '>1'}}", "7:42", ["tf-keras", "tf_keras"]),
    (HEAD + CHECKS + "assumptions: {gpus: {count: 2, at_least: 1}}", "7:32", ["count", "at_least"]),
    (HEAD + CHECKS + "assumptions: {gpus: {}}", "7:21", ["gpus", "at_least"]),
    (HEAD + CHECKS + "assumptions: {gpus: {count: -1}}", "7:29", ["count", "-1", "0"]),
    (HEAD.replace("version: 3", "version: '3'") + CHECKS, "3:10", ["3", "version"]),
    (HEAD + CHECKS + "waivers: [{check: host.memory, owner: a, expires: 2030-01-01}]", "7:11", ["reason"]),
    (HEAD + CHECKS + "waivers: [{check: host.memory, owner: a, reason: b}]", "7:11", ["expires"]),
    (HEAD + CHECKS + "waivers: [{check: host.memory, owner: a, reason: ' ', expires: 2030-01-01}]", "7:50", ["reason"]),
    (
        HEAD + CHECKS + "waivers: [{check: host.memory, owner: a, reason: b, expires: soon}]",
        "7:62",
        ["expires", "2030-12-31", "soon"],
    ),
    (
        HEAD + CHECKS + "waivers: [{check: host.memory, owner: a, reason: b, expires: 2030-13-45}]",
        "7:62",
        ["2030-13-45", "1..12"],
    ),
    (HEAD + CHECKS + "waivers: [{check: gpu.free, owner: a, reason: b, expires: 2030-01-01}]", "7:19", ["gpu.free"]),
    (
        HEAD + CHECKS + "waivers: [{check: gpu.fre, owner: a, reason: b, expires: 2030-01-01}]",
        "7:19",
        ["gpu.fre", "gpu.free"],
    ),
    (HEAD + CHECKS + "waivers: [{check: 'host.*', owner: a, reason: b, expires: 2030-01-01}]", "7:19", ["pattern"]),
    (HEAD + CHECKS + "rollback: {decides: me, at_once: [host.memroy]}", "7:35", ["host.memroy", "host.memory"]),
    (HEAD + CHECKS + "rollback: {at_once: [host]}", "7:11", ["decides"]),
    (HEAD + CHECKS + "rollback: {decides: me, at_once: host}", "7:34", ["at_once", "host"]),
    (HEAD + "? [a]\n: 1\n" + CHECKS, "5:3", ["strings"]),
    (HEAD + CHECKS + "  - id: !!python/object:os.system x", "7:9", ["tag:yaml.org,2002:python/object:os.system"]),
    ("name: x", "1:1", ["schema: kdoctor/checklist/v1"]),
    ("schema: docker/v3", "1:9", ["docker/v3", "kdoctor/checklist/v1"]),
    ("schema: kdoctor/checklist/v2\nchecks: {}", "1:9", ["kdoctor/checklist/v1", "kdoctor/checklist/v2"]),
    ("- a", "1:1", ["schema: kdoctor/checklist/v1"]),
    ("", "1:1", ["empty"]),
    ("# only a comment\n", "1:1", ["empty"]),
    (HEAD + "<<<<<<< HEAD\n" + CHECKS, "5:1", ["<<<<<<<"]),
    (HEAD + "checks: &a [{id: host.memory}]\nscenarios: *a", "6:12", ["*a"]),
    (HEAD + CHECKS + "---\n" + HEAD, "7:1", ["---"]),
    (b"schema: x\nname: caf\xe9", "2:10", ["UTF-8", "0xe9"]),
    ("schema: x\nname: \x07", "2:1", ["U+0007"]),
    (HEAD + "checks: " + "[" * 50, "5:20", ["12"]),
)


@pytest.mark.parametrize(("text", "place", "named"), MISTAKES)
def test_mistake_is_reported_at_its_place(
    tmp_path: Path, catalog: Catalog, text: str | bytes, place: str, named: list[str]
) -> None:
    (problem,) = problems_of(tmp_path, catalog, text)
    assert problem.startswith(f"{place}: ")
    assert [name for name in named if name not in problem] == []


def test_messages_of_all_mistakes(tmp_path: Path, catalog: Catalog, screen: SnapshotAssertion) -> None:
    found = [problem for text, *_ in MISTAKES for problem in problems_of(tmp_path, catalog, text)]
    assert "".join(f"{problem}\n" for problem in found) == screen


@pytest.mark.parametrize("text", ["checks: [", "a: b: c", "\tchecks: 1"])
def test_invalid_yaml_is_reported_with_its_line(tmp_path: Path, catalog: Catalog, text: str) -> None:
    (problem,) = problems_of(tmp_path, catalog, text)
    assert problem.startswith("1:")
    assert "YAML" in problem
    assert ("tabs" in problem) == ("\t" in text)


def test_all_mistakes_are_reported_in_order(tmp_path: Path, catalog: Catalog) -> None:
    text = (
        "schema: kdoctor/checklist/v1\nname: My Job\nversion: one\nowner: x\nassumtions: {}\n"
        "checks:\n  - {id: host.nothing}\n  - {id: host.memory, parameters: {least_gib: x, y: 1}}\n"
        "waivers: [{check: gone.gone}]\n"
    )
    found = problems_of(tmp_path, catalog, text)
    assert [problem.split(":")[0] for problem in found] == ["2", "3", "5", "7", "8", "8", "9", "9", "9", "9"]


def test_many_long_problems_fit_one_screen(tmp_path: Path, catalog: Catalog) -> None:
    text = HEAD + "checks:\n" + "".join(f"  - id: no.check-{'x' * 900}{number}\n" for number in range(40))
    with pytest.raises(ChecklistError) as caught:
        read(tmp_path, catalog, text)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"{tmp_path}/job.yaml:6:9: ")
    assert "25" in lines[-1]
    assert len(lines) == 16
    assert max(map(len, lines)) < 500
    assert len(caught.value.problems) == 40


def test_assumption_that_no_installed_check_judges_is_reported(tmp_path: Path, catalog: Catalog) -> None:
    text = HEAD + CHECKS + "assumptions: {python: '>=3.10', gpus: {at_least: 2, model: H100}}" + NO_SCENARIOS
    (model,) = problems_of(tmp_path, catalog, text)
    assert model.startswith("7:53: ")
    assert "gpus.model" in model


def test_scenario_that_is_left_out_is_named_where_it_is(tmp_path: Path, catalog: Catalog) -> None:
    """The check that judges it may be in the checklist that this one extends, which is not the user's."""
    text = HEAD + "extends: cpu-smoke\nwithout:\n  smoke.uneven-final-batch: slow\n"
    kind, judge = problems_of(tmp_path, load_catalog(), text)
    assert judge.startswith("7:3: smoke.starved-replica")
    assert kind.startswith("7:3: no scenario of kind 'edge-case'")
    done = text + "  smoke.starved-replica: slow\n  edge-case: slow\n"
    assert read(tmp_path, load_catalog(), done).without["edge-case"] == "slow"


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


SCENARIO = HEAD + "checks: [{id: smoke.baseline}]\nscenarios:\n  - "


@cases(
    ("{id: smoke.base, kind: baseline, replicas: 2, expect: x}", "7:10", ["smoke.base", "smoke.baseline"]),
    (
        "{id: smoke.baseline, kind: edge-case, replicas: 2, expect: x}",
        "7:32",
        ["smoke.baseline", "baseline", "edge-case"],
    ),
    *(
        (
            f"{{id: smoke.baseline, kind: baseline, replicas: {value}, expect: x}}",
            "7:52",
            ["replicas", "gpus", "1", "64"],
        )
        for value in ("gpu", "true", "0", "65")
    ),
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
