"""Output of dcgmi diag, Health Validation and the fabric manager. Documents are invented, with the tools' names."""

import json
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import group, imported
from kdoctor.errors import UsageError
from kdoctor_recordings.facts import Diagnostics

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
FABRIC = """\
[Feb 25 2025 13:59:45] [INFO] [tid 1803] Received an inband message
[Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch {} error 20034 on fid 0 on NVSwitch pci bus id \
00000000:86:00.0 physical id 3 port 61
"""


def results(folder: Path, text: str) -> list[tuple[str, str, str]]:
    found = group(imported(folder, text).facts, Diagnostics)
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


@pytest.mark.parametrize(("word", "status"), [("fatal", "fail"), ("non-fatal", "warn")])
def test_errors_of_the_fabric_manager(tmp_path: Path, word: str, status: str) -> None:
    assert results(tmp_path, FABRIC.format(word)) == [("SXid 20034", "NVSwitch 0000:86:00.0", status)]


def test_incomplete_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="JSON"):
        imported(tmp_path, json.dumps(DCGM_3)[:-5])


def diagnostics(folder: Path, document: object) -> list[tuple[str, str, str]]:
    """Subject, status and message of each result."""
    found = group(imported(folder, json.dumps(document) + "\n").facts, Diagnostics)
    return [(item.subject, item.status, item.message) for item in found.results]


@cases(
    ({"gpu_ids": "0, 3", "status": "PASS"}, [("GPU 0", "pass", ""), ("GPU 3", "pass", "")]),
    ({"gpu_id": 2, "status": "Fail"}, [("GPU 2", "fail", "")]),
    ({"gpu_ids": "all", "status": "Fail"}, [("node", "fail", "")]),
    ({"status": "Not  Run"}, [("node", "skip", "")]),
    ({"entity_group": "CPU", "entity_id": 0, "status": "OK"}, [("CPU 0", "pass", "")]),
    ({"entity_id": 1, "status": "Critical"}, [("GPU 1", "fail", "")]),
    ({"gpu_id": 1}, [("GPU 1", "unknown", "")]),
    ({"gpu_id": 1, "status": "something"}, [("GPU 1", "unknown", "")]),
    (
        {"gpu_id": 1, "status": "Warn", "warnings": [{"warning": "one"}, {"message": "two"}, "three"]},
        [("GPU 1", "warn", "one; two; three")],
    ),
    ({"gpu_id": 1, "status": "Warn", "warnings": [None, {}, ""], "info": "hot"}, [("GPU 1", "warn", "hot")]),
    ({"gpu_id": 1, "status": "Warn", "message": "a", "error": "b"}, [("GPU 1", "warn", "a; b")]),
)
def test_result_of_a_test_in_each_form(
    tmp_path: Path, result: dict[str, object], expected: list[tuple[str, str, str]]
) -> None:
    tests = [{"name": "pcie", "results": [result, "something else"]}, {"name": "none", "results": None}]
    assert diagnostics(tmp_path, {"DCGM Diagnostic": {"test_categories": [{"tests": tests}]}}) == expected


def test_errors_of_the_fabric_manager_are_listed_once_and_in_order(tmp_path: Path) -> None:
    line = "[Feb 27 2025 15:10:{:02}] [{}] [tid 12727] {}\n"
    error = "detected NVSwitch non-fatal error {} on NVSwitch pci bus id 00000000:86:00.0 physical id 3"
    text = (
        line.format(1, "INFO", "starting")
        + line.format(2, "ERROR", error.format(11012))
        + line.format(3, "ERROR", "failed to connect")
        + line.format(4, "ERROR", error.format(11012))
        + line.format(5, "CRITICAL", "stopped")
        + line.format(6, "WARNING", "slow")
        + line.format(7, "INFO", error.format(12028))
    )
    found = group(imported(tmp_path, text).facts, Diagnostics)
    assert [(item.test, item.subject, item.status) for item in found.results] == [
        ("SXid 11012", "NVSwitch 0000:86:00.0", "warn"),
        ("log", "fabric manager", "warn"),
        ("log", "fabric manager", "warn"),
        ("SXid 12028", "NVSwitch 0000:86:00.0", "warn"),
    ]
    assert [item.message for item in found.results] == [
        "NVSwitch non-fatal error 11012 on NVSwitch pci bus id 00000000:86:00.0",
        "failed to connect",
        "stopped",
        "NVSwitch non-fatal error 12028 on NVSwitch pci bus id 00000000:86:00.0",
    ]


def test_address_of_a_switch_in_another_form_is_kept(tmp_path: Path) -> None:
    text = FABRIC.format("fatal").replace("00000000:86:00.0", "86:00")
    assert results(tmp_path, text) == [("SXid 20034", "NVSwitch 86:00", "fail")]
