import json
import re
from typing import Any

import pytest
from junitparser import JUnitXml
from prometheus_client.parser import text_string_to_metric_families

from helpers.kdoctor_fleet.fleets import Document, fact, fleet_of, merged, names_of
from kdoctor.text.canvas import Canvas
from kdoctor_fleet.formats import FORMATS, render
from kdoctor_fleet.report import FleetDocument, FleetReport

HOSTILE = "<script>alert(1)</script>\x1b[31m'\"`$(reboot)|\u202e]]>"


def planted() -> FleetReport:
    """Four of 64 nodes differ, and one is silent."""
    cudnn = fact("libraries", "cudnn", "9.1.0")
    plants = {
        3: [cudnn],
        7: [cudnn],
        9: [fact("environment", "NCCL_ALGO", "Ring")],
        11: [fact("driver", "version", "535.1")],
    }
    return merged(fleet_of(63, plants), names=tuple(names_of(64)))


def hostile() -> FleetReport:
    """A node whose every text is an attack."""

    def plant(document: Document) -> None:
        document["verdict"], document["verdict_reason"] = "fail", HOSTILE
        document["facts"]["packages"]["keras"] = HOSTILE
        document["facts"]["environment"][HOSTILE] = HOSTILE
        failed = document["results"][0] | {"status": "fail", "title": HOSTILE}
        document["results"] = [failed, *document["results"][1:]]
        document["causes"] = [
            {
                "checks": [failed["id"]],
                "severity": "error",
                "problems": [{"check": failed["id"], "subjects": [HOSTILE], "headline": HOSTILE}],
                "fix": HOSTILE,
                "commands": [HOSTILE],
                "look": [HOSTILE],
                "rollback": {"kind": "nothing", "why": HOSTILE, "commands": []},
                "explains": [],
            }
        ]

    return merged(fleet_of(3, {2: [plant]}))


def test_screen_is_one_page(screen: Any) -> None:
    text = render(planted(), "terminal")
    assert len(text.splitlines()) <= 30
    assert all(len(line) <= 80 for line in text.splitlines() if "  " not in line[:6])
    assert text == screen


def test_full_report_names_each_node_that_did_not_pass() -> None:
    text = render(planted(), "terminal", Canvas(verbosity=1))
    _, _, nodes = text.partition("Nodes that did not pass")
    assert re.findall(r"^  (node\d+): (\w+)", nodes, re.MULTILINE) == [
        ("node0003", "failed"), ("node0007", "failed"), ("node0009", "failed"), ("node0011", "failed"),
        ("node0064", "silent"),
    ]  # fmt: skip


@pytest.mark.parametrize("make", [planted, hostile])
@pytest.mark.parametrize("name", FORMATS)
def test_no_format_passes_control_characters_on(name: str, make: Any) -> None:
    text = render(make(), name)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


def test_page_has_a_node_for_each_and_no_script_of_a_node() -> None:
    page = render(hostile(), "html")
    assert page.count("<script>") == 1
    assert "alert(1)</script>" not in page
    assert "http://" not in page.replace("http-equiv", "")
    assert re.findall(r'<li class="(\w+)"[^>]*>(node\d+)</li>', page) == [
        ("passed", "node0001"), ("failed", "node0002"), ("passed", "node0003"),
    ]  # fmt: skip


def test_page_can_be_filtered_by_the_families_with_problems() -> None:
    page = render(planted(), "html")
    assert re.findall(r'<option value="(\w+)">', page) == ["passed", "failed", "silent", "cluster"]


def test_junit_has_a_case_for_each_node() -> None:
    text = render(planted(), "junit")
    suites = {suite.name: suite for suite in JUnitXml.fromstring(text.encode())}
    nodes = suites["kdoctor.nodes"]
    assert (nodes.tests, nodes.failures, nodes.errors) == (64, 4, 1)
    assert f'tests="{sum(suite.tests for suite in suites.values())}"' in text.partition("<testsuite ")[0]


def test_prometheus_counts_the_nodes() -> None:
    families = {family.name: family for family in text_string_to_metric_families(render(planted(), "prometheus"))}
    states = {sample.labels["state"]: sample.value for sample in families["kdoctor_fleet_nodes"].samples}
    assert states == {"passed": 59, "failed": 4, "unknown": 0, "silent": 1}
    assert families["kdoctor_fleet_nodes_needed"].samples[0].value == 64
    used = {sample.labels["node"]: sample.value for sample in families["kdoctor_fleet_node_passed"].samples}
    assert len(used) == 64
    assert [name for name, value in used.items() if not value] == [f"node{number:04}" for number in (3, 7, 9, 11, 64)]


def test_markdown_has_a_row_for_each_node_that_did_not_pass() -> None:
    text = render(planted(), "markdown")
    assert re.findall(r"^\| (node\d+) \| (\w+)", text, re.MULTILINE)[-1] == ("node0064", "silent")
    outside = re.sub(r"^ *(`{3,})sh\n.*?^ *\1$", "", render(hostile(), "markdown"), flags=re.DOTALL | re.MULTILINE)
    assert "<script>" not in outside


def test_document_holds_the_report() -> None:
    shown = planted()
    document = json.loads(render(shown, "json"))
    read = FleetDocument.model_validate(document)
    assert read.passing == shown.passing
    assert read.failing == ("node0003", "node0007", "node0009", "node0011", "node0064")
    (cause,) = (cause for cause in read.causes if cause.checks == ("cluster.cuda-libraries",))
    assert (cause.nodes, cause.scope) == (("node0003", "node0007"), "job")
    assert {item.name: item.broken for item in read.nodes if item.broken} == {"node0011": True}
    assert {item.engine for item in read.exclusions} == {"slurm", "kubernetes", "hosts"}
