"""``kdoctor check`` on a real GPU: healthy, and with planted faults."""

import re
from pathlib import Path

import pytest

from helpers.real_gpu import Ran, Record, occupied, run_kdoctor, statuses
from kdoctor.facts import Gpus

pytestmark = pytest.mark.gpu

MACHINE = ("driver", "gpu", "topology", "network", "host")
"""Families that need neither TensorFlow nor a training."""
NVIDIA = ("driver", "gpu", "topology", "network")
TRAINED = ("gpu.replicas-match",)
GIB = 1024**3


@pytest.fixture(scope="module")
def checklist(record: Record, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checklist") / "this-machine.yaml"
    done = run_kdoctor(record, "checklist", "init", path, folder=path.parent)
    assert done.code == 0, done.stderr
    assert run_kdoctor(record, "checklist", "validate", path, folder=path.parent).code == 0
    return path


def check(record: Record, checklist: Path, *arguments: str | Path, **variables: str) -> Ran:
    options = ("--checklist", checklist, "--no-smoke", "--format", "json")
    return run_kdoctor(record, "check", *options, *arguments, folder=checklist.parent, **variables)


def test_checklist_names_the_gpu(checklist: Path, gpus: Gpus) -> None:
    text = checklist.read_text()
    assert f"count: {len(gpus.devices)}" in text
    assert gpus.driver_version
    assert f'driver: ">={gpus.driver_version}"' in text


def test_machine_passes_its_own_checklist(checklist: Path, record: Record, tmp_path: Path) -> None:
    snapshot = tmp_path / "machine.json"
    done = check(record, checklist, "--save-snapshot", snapshot)
    for name, result in done.results.items():
        if name.startswith(MACHINE):
            found = [f"{item['subject']}: {item['observed']}" for item in result["findings"]]
            seen = [f"{item['subject']}: {item['observed']}" for item in result["evidence"]]
            said = "; ".join(found or seen[:2]) or result["reason"]
            record.row(
                "Checks", check=name, status=result["status"], said=re.sub(r"GPU-[0-9a-f-]+", "GPU-...", said)[:300]
            )
    record.row("Time of kdoctor", command="check --no-smoke", exit_code=done.code, seconds=done.seconds)
    broken = [
        name
        for name, result in done.results.items()
        if name.startswith(NVIDIA) and (result["status"], result["severity"]) == ("fail", "error")
    ]
    assert broken == []
    judged = statuses(done.results, MACHINE)
    assert judged["driver.loaded"] == "pass"
    assert judged["gpu.responding"] == "pass"
    again = run_kdoctor(
        record, "check", "--checklist", checklist, "--snapshot", snapshot, "--format", "json", folder=tmp_path
    )
    kept = {name: status for name, status in judged.items() if name not in TRAINED}
    assert {name: statuses(again.results, MACHINE).get(name) for name in kept} == kept


def test_newer_driver_than_installed_is_a_failure(checklist: Path, record: Record, tmp_path: Path) -> None:
    planted = tmp_path / "planted.yaml"
    planted.write_text(re.sub(r'driver: ">=[^"]+"', 'driver: ">=9999.1"', checklist.read_text()), encoding="utf-8")
    done = check(record, planted)
    assert done.code == 1
    result = done.results["versions.runtime-expected"]
    assert result["status"] == "fail"
    assert any("9999.1" in finding["expected"] for finding in result["findings"])


@pytest.mark.parametrize("value", ["", "-1", "99", "GPU-00000000-0000-0000-0000-000000000000"])
def test_hidden_gpu_is_a_failure(value: str, checklist: Path, record: Record) -> None:
    done = check(record, checklist, "--select", "environment.visible-devices", CUDA_VISIBLE_DEVICES=value)
    assert done.results["environment.visible-devices"]["status"] == "fail"
    assert done.code == 1


def test_gpu_held_by_another_process_is_a_failure(checklist: Path, record: Record, gpus: Gpus) -> None:
    with occupied("hold", str(2 * GIB)) as holder:
        done = check(record, checklist, "--select", "gpu.free")
    result = done.results["gpu.free"]
    assert result["status"] == "fail"
    assert [finding["subject"] for finding in result["findings"]] == [gpus.devices[0].subject]
    observed = result["findings"][0]["observed"]
    named = str(holder["pid"]) in observed
    record.row("Planted faults", fault="a process holds 2 GiB", check="gpu.free", code=done.code, process_named=named)
    assert done.code == 1
    after = check(record, checklist, "--select", "gpu.free")
    assert after.results["gpu.free"]["status"] == "pass"


def test_exhausted_memory_is_a_failure_and_ends_a_training(checklist: Path, record: Record) -> None:
    with occupied("exhaust") as holder:
        done = check(record, checklist, "--select", "gpu.free")
        smoke = run_kdoctor(record, "smoke", "data-parallel", "--format", "json", folder=checklist.parent)
    assert done.results["gpu.free"]["status"] == "fail"
    run = smoke.results["smoke.data-parallel"]
    said = " ".join(str(run["findings"] or run["reason"]).split())[:300]
    record.row(
        "Planted faults",
        fault=f"{holder['held_bytes'] / GIB:.1f} GiB held, {holder['free_bytes'] / 1024**2:.0f} MiB free",
        check="smoke.data-parallel",
        code=smoke.code,
        process_named=said,
    )
    assert (smoke.code, run["status"]) != (0, "pass")
