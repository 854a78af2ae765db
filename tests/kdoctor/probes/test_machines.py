"""The real command line on whole machines: KDOCTOR_ROOT, the fake NVML and the real binding."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers import machines
from helpers.cases import cases
from helpers.command import kdoctor
from helpers.machines import MACHINES
from kdoctor.facts import FactGroup, Gpus, Kernel, KernelDriver, KernelLog, PciDevices, Unavailable

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(sys.platform != "linux", reason="libnvidia-ml.so.1 is Linux'")]


def run(name: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return kdoctor(*arguments, cwd=folder, variables=machines.environment(name, folder))


def snapshot(name: str, folder: Path) -> dict[str, Any]:
    done = run(name, folder, "snapshot", "--no-smoke")
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)["facts"]
    return facts


def test_snapshot_of_eight_h100_has_links_and_acs(tmp_path: Path) -> None:
    facts = snapshot("h100-nvswitch", tmp_path)
    assert [gpu["bus_id"][5:7] for gpu in facts["gpus"]["devices"]] == ["19", "3b", "4c", "5d", "9b", "bb", "cb", "db"]
    assert {len(gpu["nvlinks"]) for gpu in facts["gpus"]["devices"]} == {18}
    acs = {device["bus_id"]: [bridge["acs_control"] for bridge in device["path"]] for device in facts["pci"]["devices"]}
    assert acs["0000:19:00.0"] == [0, 0, 0]
    assert acs["0000:83:00.0"] == [0x1D] * 3
    assert facts["kernel"]["daemons"] == ["nv-fabricmanager", "nvidia-persistenced"]
    assert facts["kernel_log"]["events"] == []
    assert facts["host"]["cpus"] == 224


def test_lost_gpu_fails_the_check(tmp_path: Path) -> None:
    done = run("one-gpu-lost", tmp_path, "check", "--no-smoke", "--format", "json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"]) == (1, "fail"), done.stderr
    subjects = {finding["subject"] for result in report["results"] for finding in result["findings"]}
    assert any("0000:81:00.0" in subject or "GPU 2" in subject for subject in subjects)
    assert not any(subject.startswith(("GPU 0 (", "GPU 1 (", "GPU 3 (")) for subject in subjects)


@pytest.mark.parametrize("name", ["driver-not-loaded", "library-mismatch", "permission-denied"])
def test_unresponsive_driver_does_not_pass(tmp_path: Path, name: str) -> None:
    done = run(name, tmp_path, "check", "--no-smoke", "--format", "json")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["verdict"] == "fail"


def test_unsupported_calls_do_not_pass(tmp_path: Path) -> None:
    done = run("nothing-supported", tmp_path, "check", "--no-smoke", "--format", "json")
    assert done.returncode in {1, 3}, done.stderr


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_every_machine_can_be_read(name: str) -> None:
    facts = machines.facts(name)
    groups: tuple[type[FactGroup], ...] = (Gpus, Kernel, KernelDriver, KernelLog, PciDevices)
    for group in groups:
        assert not isinstance(facts[group], Unavailable), (group, facts[group])


@cases(
    ("driver-not-loaded", "driver-not-loaded"),
    ("nouveau", "driver-not-loaded"),
    ("unsigned-module", "driver-not-loaded"),
    ("library-mismatch", "library-mismatch"),
    ("permission-denied", "no-permission"),
    ("one-gpu-lost", "ready"),
    ("nothing-supported", "ready"),
    ("one-call-hangs", "ready"),
)
def test_driver_state_is_detected(name: str, state: str) -> None:
    assert machines.gpus(name).state == state


def test_nouveau_and_unsigned_modules_are_distinguished() -> None:
    kernels = [machines.facts(name)[Kernel] for name in ("driver-not-loaded", "nouveau", "unsigned-module")]
    assert ["nouveau" in (getattr(kernel, "modules", ()) or ()) for kernel in kernels] == [False, True, False]
    assert [isinstance(kernel, Kernel) and kernel.secure_boot for kernel in kernels] == [False, False, True]
    log = machines.facts("unsigned-module")[KernelLog]
    assert isinstance(log, KernelLog)
    assert [event.kind for event in log.events] == ["module-rejected"]


def test_hanging_call_affects_one_gpu() -> None:
    first, second = machines.gpus("one-call-hangs").devices
    assert first.power_draw_w == 7.2
    assert (second.power_draw_w, second.errors["power_draw_w"]) == (None, "no answer within 3.2 s")
    assert second.name == "NVIDIA L4"


@pytest.mark.parametrize("name", machines.HEALTHY)
def test_nvml_and_pci_tree_agree_on_healthy_machines(name: str) -> None:
    gpus, pci = machines.gpus(name), machines.facts(name)[PciDevices]
    assert isinstance(pci, PciDevices)
    assert [gpu.bus_id for gpu in gpus.devices] == [device.bus_id for device in pci.gpus]
    for gpu in gpus.devices:
        device = pci.find(gpu.bus_id)
        assert device is not None
        assert (gpu.pcie_width, gpu.cpu_affinity) == (device.link_width, device.local_cpus)
