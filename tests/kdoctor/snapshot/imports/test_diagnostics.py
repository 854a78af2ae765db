"""Output of dcgmi diag, Health Validation and the fabric manager. Documents are invented, with the tools' names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.dumps import imported
from kdoctor.errors import UsageError
from kdoctor.facts import Diagnostics

# https://docs.nvidia.com/datacenter/dcgm/latest/reference/command-line-reference/dcgmi/dcgmi-diag.html
DCGM_3 = {
    "DCGM GPU Diagnostic": {
        "test_categories": [
            {
                "category": "Deployment",
                "tests": [{"name": "Denylist", "results": [{"gpu_ids": "0,1", "status": "PASS"}]}, None],
            },
            {
                "category": "Hardware",
                "tests": [
                    {
                        "name": "GPU Memory",
                        "results": [
                            {"gpu_ids": "0", "status": "Pass"},
                            {"gpu_ids": "1", "status": "Fail", "warnings": [{"warning": "a fault", "error_id": 83}]},
                        ],
                    }
                ],
            },
        ]
    }
}
DCGM_4 = {
    "DCGM Diagnostic": {
        "test_categories": [
            {
                "category": "Hardware",
                "tests": [
                    {
                        "name": "pcie",
                        "results": [{"entity_group": "GPU", "entity_group_id": 1, "entity_id": 2, "status": "Warn"}],
                        "test_summary": {"status": "Warn"},
                    }
                ],
            }
        ]
    }
}
# https://docs.nvidia.com/health-validation/reference/verdict-schema.md
VERDICT = {
    "overall_severity": "CRITICAL",
    "affected_components": [
        {"category": "xid", "max_severity": "CRITICAL", "check_ids": ["gpu_xid_79"], "entities": ["node"]}
    ],
}
FABRIC = """\
[Feb 25 2025 13:59:45] [INFO] [tid 1803] Received an inband message
[Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch {} error 20034 on fid 0 on NVSwitch pci bus id \
00000000:86:00.0 physical id 3 port 61
"""


def results(folder: Path, text: str) -> list[tuple[str, str, str]]:
    found = imported(folder, text).facts[Diagnostics]
    assert isinstance(found, Diagnostics)
    return [(item.test, item.subject, item.status) for item in found.results]


@pytest.mark.parametrize("indent", [None, 2])
def test_results_of_dcgm_3(tmp_path: Path, indent: int | None) -> None:
    assert results(tmp_path, json.dumps(DCGM_3, indent=indent) + "\n") == [
        ("Denylist", "GPU 0", "pass"),
        ("Denylist", "GPU 1", "pass"),
        ("GPU Memory", "GPU 0", "pass"),
        ("GPU Memory", "GPU 1", "fail"),
    ]


def test_results_of_dcgm_4(tmp_path: Path) -> None:
    assert results(tmp_path, json.dumps(DCGM_4)) == [("pcie", "GPU 2", "warn")]


def test_verdict_of_a_node(tmp_path: Path) -> None:
    assert results(tmp_path, json.dumps(VERDICT)) == [("gpu_xid_79", "node", "fail")]
    assert results(tmp_path, json.dumps({"overall_severity": "PASS"})) == [("overall_severity", "node", "pass")]
    assert results(tmp_path, json.dumps({"overall_severity": "SOMETHING"})) == [("overall_severity", "node", "unknown")]


def test_verdicts_of_checks(tmp_path: Path) -> None:
    verdicts = [
        {"check_id": "gpu_count", "severity": "PASS", "entity": "node"},
        {"check_id": "gpu_power_state", "severity": "WARNING", "entity": "GPU 1"},
    ]
    document = {"overall_severity": "WARNING", "check_verdicts": verdicts}
    assert results(tmp_path, json.dumps(document)) == [
        ("gpu_count", "node", "pass"),
        ("gpu_power_state", "GPU 1", "warn"),
    ]


@pytest.mark.parametrize(("word", "status"), [("fatal", "fail"), ("non-fatal", "warn")])
def test_errors_of_the_fabric_manager(tmp_path: Path, word: str, status: str) -> None:
    assert results(tmp_path, FABRIC.format(word)) == [("SXid 20034", "NVSwitch 0000:86:00.0", status)]


def test_incomplete_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="JSON"):
        imported(tmp_path, json.dumps(DCGM_3)[:-5])


def test_messages_of_a_result_are_kept(tmp_path: Path) -> None:
    found = imported(tmp_path, json.dumps(DCGM_3) + "\n").facts[Diagnostics]
    assert isinstance(found, Diagnostics)
    assert [item.message for item in found.results] == ["", "", "", "a fault"]
