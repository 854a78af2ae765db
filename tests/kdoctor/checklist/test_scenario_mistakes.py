from __future__ import annotations

from pathlib import Path

import pytest

from helpers.catalogs import host_check, scenario, small_catalog, smoke_check
from helpers.checklist_texts import CHECKS, FULL, HEAD, NO_SCENARIOS, ONLY_BASELINE, REASON, read, told
from kdoctor.engine.catalog import Catalog


@pytest.fixture
def catalog() -> Catalog:
    return small_catalog()


def test_a_list_without_one_of_the_three_kinds_says_why(tmp_path: Path, catalog: Catalog) -> None:
    assert told(tmp_path, catalog, HEAD + CHECKS) == [
        (
            "1:1: no scenario of kind 'baseline': add smoke.baseline to 'scenarios', or say why not, "
            "'without: {baseline: \"the reason\"}'"
        ),
        "1:1: no scenario of kind 'edge-case': say why not, 'without: {edge-case: \"the reason\"}'",
        "1:1: no scenario of kind 'failure-path': say why not, 'without: {failure-path: \"the reason\"}'",
    ]
    assert read(tmp_path, catalog, HEAD + CHECKS + NO_SCENARIOS).without["baseline"] == REASON


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            FULL.replace("without: {", "without: {baseline: too slow, "),
            "16:11: a scenario of kind 'baseline' is listed, so the reason to do without one is out of date",
        ),
        (
            FULL.replace("without: {edge-case", "without: {edge-cases"),
            "16:11: 'edge-cases' is neither a kind of scenario nor a check; did you mean 'edge-case'?",
        ),
        (
            FULL.replace("without: {", "without: {gpu.free: busy, "),
            "16:11: gpu.free is not inherited: without 'extends', leave it out of the list",
        ),
        (
            FULL.replace("edge-case: none was written yet", "edge-case: ' '"),
            "16:22: 'edge-case' is empty: say it in words",
        ),
        (
            FULL.replace("fix_forward: [host]", "investigate: [severity:eror]"),
            "22:17: 'severity:eror' matches no check of this checklist; did you mean 'severity:error'?",
        ),
    ],
)
def test_mistakes_in_without_and_in_criteria(tmp_path: Path, catalog: Catalog, text: str, expected: str) -> None:
    assert told(tmp_path, catalog, text) == [expected]


def test_a_scenario_that_nothing_judges_is_told(tmp_path: Path, catalog: Catalog) -> None:
    text = HEAD + CHECKS + "scenarios: [{id: smoke.baseline, kind: baseline, replicas: 2, expect: x}]" + ONLY_BASELINE
    assert told(tmp_path, catalog, text) == [
        "7:18: no check of this list judges scenario smoke.baseline: add smoke.baseline to 'checks'"
    ]


def test_a_check_whose_scenario_is_not_listed_is_told(tmp_path: Path, catalog: Catalog) -> None:
    assert told(tmp_path, catalog, HEAD + CHECKS + "  - id: smoke.baseline" + NO_SCENARIOS) == [
        "7:9: smoke.baseline judges scenario smoke.baseline, which is not listed: add it to 'scenarios'"
    ]


def test_a_prerequisites_scenario_counts_too(tmp_path: Path) -> None:
    catalog = small_catalog(host_check("host.after", requires=["smoke.baseline"]))
    (problem,) = told(tmp_path, catalog, HEAD + "checks: [{id: host.after}]" + NO_SCENARIOS)
    assert problem.startswith("5:15: smoke.baseline judges scenario smoke.baseline, which is not listed")


SCENARIO = HEAD + "checks: [{id: smoke.baseline}]\nscenarios:\n  - "


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            "{id: smoke.base, kind: baseline, replicas: 2, expect: x}",
            "7:10: unknown scenario 'smoke.base'; did you mean 'smoke.baseline'?",
        ),
        (
            "{id: smoke.baseline, kind: edge-case, replicas: 2, expect: x}",
            "7:32: smoke.baseline is of kind 'baseline', not 'edge-case'",
        ),
        (
            "{id: smoke.baseline, kind: baseline, replicas: gpu, expect: x}",
            (
                "7:52: 'replicas': expected 'gpus' (one on each visible GPU) or a number from 1 to 64, not 'gpu'; "
                "did you mean 'gpus'?"
            ),
        ),
        (
            "{id: smoke.baseline, kind: baseline, replicas: true, expect: x}",
            "7:52: 'replicas': expected 'gpus' (one on each visible GPU) or a number from 1 to 64, not True",
        ),
        (
            "{id: smoke.baseline, kind: baseline, strategy: miror, replicas: 2, expect: x}",
            (
                "7:52: 'strategy' is 'miror'; expected one of mirrored, one-device, central-storage, multi-worker, "
                "parameter-server, tpu, data-parallel, model-parallel; did you mean 'mirrored'?"
            ),
        ),
        (
            "{id: smoke.baseline, kind: baseline, strategy: tpu, replicas: 2, expect: x}",
            "7:52: smoke.baseline is about strategy 'mirrored', not 'tpu'",
        ),
        ("{id: smoke.baseline, kind: baseline, replicas: 2}", "7:5: 'expect' is missing"),
    ],
)
def test_mistakes_in_a_scenario(tmp_path: Path, catalog: Catalog, entry: str, expected: str) -> None:
    assert told(tmp_path, catalog, SCENARIO + entry) == [expected]


def test_a_scenario_listed_twice_is_told(tmp_path: Path) -> None:
    catalog = small_catalog(scenario("smoke.edge", "edge-case"), smoke_check("smoke.edge", "smoke.edge"))
    entry = "{id: smoke.baseline, kind: baseline, replicas: 2, expect: x}"
    assert told(tmp_path, catalog, f"{SCENARIO}{entry}\n  - {entry}") == [
        "8:10: smoke.baseline is listed twice (first in line 7): keep one"
    ]
