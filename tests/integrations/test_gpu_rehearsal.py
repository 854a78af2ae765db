"""The tests on a real GPU, rehearsed on a machine that is not there: they pass, find a difference, and skip."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.rehearsal import Rehearsal, prepare

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.skipif(sys.version_info < (3, 11) or sys.platform != "linux", reason="needs tomllib, and /sys"),
]
MACHINE = ("-q", "-k", "test_driver.py or test_machine.py")
"""The part without a load and without trainings."""


def rehearse(rehearsal: Rehearsal, *options: str) -> tuple[int, dict[str, dict[str, Any]], dict[str, Any]]:
    """Exit code, the outcome of each test, and the record."""
    output = rehearsal.folder / "record.json"
    code, said = rehearsal.run("--output", str(output), *options)
    assert output.is_file(), said
    record = json.loads(output.read_text(encoding="utf-8"))
    return code, {test["test"]: test for test in record["tests"]}, record


def test_machine_passes_and_is_recorded(tmp_path: Path) -> None:
    code, tests, record = rehearse(prepare(tmp_path / "machine"), *MACHINE)
    assert code == 0
    assert {test["outcome"] for test in tests.values()} == {"passed", "skipped"}
    assert [name for name, test in tests.items() if test["outcome"] == "skipped" and not test["reason"]] == []
    assert sum(test["outcome"] == "passed" for test in tests.values()) >= 50
    assert record["rehearsal"] is True
    assert record["machine"]["GPUs"] == "0: NVIDIA L4"
    fields = {row[1]: row[2:] for row in record["tables"]["NVML and nvidia-smi"]["rows"]}
    assert fields["memory_total_bytes"] == [23034 * 1024**2] * 2
    assert "GPU-0" not in json.dumps(record)


DIFFERENCES = (
    ("nvidia-smi -q -x", "<max_link_width>16x", "<max_link_width>8x", "nvidia_smi_prints[pcie_width_max]"),
    ("nvidia-smi -q -x", "<gpu_temp>41", "<gpu_temp>81", "nvidia_smi_prints[temperature_c]"),
    ("nvidia-smi --query-gpu=memory.total", "23034", "24564", "what_a_query_prints[memory.total]"),
    ("nvidia-smi topo", "0-63", "0-31", "affinities_are_those_of_nvidia_smi[cpu_affinity]"),
    ("lspci", "Width x16 (ok)\n\tKernel", "Width x8 (downgraded)\n\tKernel", "pci_devices_are_those_of_lspci"),
    ("dmesg", "module taints kernel.", "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.", "dmesg_has"),
)
"""What a program prints, what it prints instead, and the test that must fail."""


def test_differences_between_the_tools_fail(tmp_path: Path) -> None:
    rehearsal = prepare(tmp_path / "machine")
    for tool, old, new, _ in DIFFERENCES:
        rehearsal.change(tool, old, new)
    code, tests, _ = rehearse(rehearsal, *MACHINE)
    assert code == 1
    failed = [name for name, test in tests.items() if test["outcome"] == "failed"]
    assert [part for *_, part in DIFFERENCES if not any(part in name for name in failed)] == []
    also = ("text_and_xml", "dmesg_has", "xids_are_counted")
    assert [name for name in failed if not any(part in name for part in (*also, *(d[3] for d in DIFFERENCES)))] == []
    assert all(tests[name]["reason"] for name in failed)


def test_missing_tools_are_skipped_with_their_names(tmp_path: Path) -> None:
    code, tests, _ = rehearse(prepare(tmp_path / "machine", tools=()), *MACHINE)
    assert code == 0
    reasons = {test["reason"] for test in tests.values() if test["outcome"] == "skipped"}
    assert {f"{name} is not installed" for name in ("nvidia-smi", "lspci", "dmesg")} <= reasons
    assert any(test["outcome"] == "passed" for test in tests.values())


def test_machine_without_gpu_skips_everything(tmp_path: Path) -> None:
    rehearsal = prepare(tmp_path / "machine")
    rehearsal.variables["LD_LIBRARY_PATH"] = str(tmp_path)
    for node in (tmp_path / "machine/root/dev").glob("nvidia*"):
        node.unlink()
    code, tests, record = rehearse(rehearsal, "-q")
    assert code == 0
    assert {test["outcome"] for test in tests.values()} == {"skipped"}
    assert all(test["reason"].startswith("no NVIDIA GPU") for test in tests.values())
    assert record["tables"] == {}
