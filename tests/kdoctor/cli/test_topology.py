"""``kdoctor topology`` on described machines and on a snapshot."""

import json
import sys
from pathlib import Path

import pytest

from helpers import machines
from helpers.command import kdoctor

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(sys.platform != "linux", reason="NVML and sysfs are Linux'")]


def test_two_sockets_with_switches_are_drawn(tmp_path: Path) -> None:
    done = kdoctor("topology", "--replicas", "4", variables=machines.environment("a100-pcie", tmp_path))
    assert done.returncode == 0, done.stderr
    assert "  GPU0       X   PIX   PHB   PHB   SYS   SYS   SYS   SYS\n" in done.stdout
    assert "├─ socket 0\n  │  └─ NUMA node 0\n" in done.stdout
    assert "4 replicas: GPU 0, 1, 2, 3\n" in done.stdout
    assert "    export CUDA_VISIBLE_DEVICES=0,1,2,3\n" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_snapshot_gives_same_topology(tmp_path: Path) -> None:
    variables = machines.environment("h100-nvswitch", tmp_path)
    live = kdoctor("topology", "--format", "json", variables=variables)
    record = tmp_path / "record.json"
    assert kdoctor("snapshot", "--no-smoke", "-o", record, variables=variables).returncode == 0
    again = kdoctor("topology", "--format", "json", "--snapshot", record)
    assert json.loads(live.stdout) == json.loads(again.stdout)
    document = json.loads(live.stdout)
    assert document["schema"] == "kdoctor/topology/v1"
    assert [choice["replicas"] for choice in document["choices"]] == [2, 4, 8]
    assert {pair["link"] for pair in document["pairs"]} == {"NV18"}
    assert document["choices"][1]["environment"] == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "0,1,2,3",
    }


def test_sixteen_gpus_fit_in_80_columns(tmp_path: Path) -> None:
    done = kdoctor("topology", "-n", "8", variables=machines.environment("a100-sixteen", tmp_path))
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_missing_gpus_are_an_error(tmp_path: Path) -> None:
    done = kdoctor("topology", LD_LIBRARY_PATH="/nowhere")
    assert done.returncode == 2
    assert done.stderr.startswith("kdoctor: ")
    assert not done.stdout
    log = tmp_path / "my log"
    log.write_text("[  1.0] NVRM: Xid (PCI:0000:4e:00): 79, GPU has fallen off the bus.\n")
    recorded = kdoctor("topology", "--snapshot", log)
    assert recorded.stderr.endswith(f"kdoctor check --snapshot '{log}'\n")


def test_gpu_that_fails_a_check_is_chosen_last(tmp_path: Path) -> None:
    variables = machines.environment("h100-nvswitch", tmp_path)
    record = tmp_path / "record.json"
    assert kdoctor("snapshot", "--no-smoke", "-o", record, variables=variables).returncode == 0
    document = json.loads(record.read_text())
    document["facts"]["gpus"]["devices"][0]["remapped_rows_failure"] = True
    record.write_text(json.dumps(document))
    done = kdoctor("topology", "--snapshot", record)
    assert "Not chosen (failing a check, if there are enough others): GPU 0\n" in done.stdout
    assert "CUDA_VISIBLE_DEVICES=1,2\n" in done.stdout
    assert "1 of these GPUs is failing a check" in " ".join(done.stdout.split())
    assert "Not chosen" not in kdoctor("topology", "--snapshot", record, "-n", "8").stdout


def test_more_replicas_than_gpus_is_an_error(tmp_path: Path) -> None:
    done = kdoctor("topology", "-n", "3", variables=machines.environment("rtx5090", tmp_path))
    assert done.returncode == 2
    assert "3 replicas" in done.stderr
    assert "2" in done.stderr
