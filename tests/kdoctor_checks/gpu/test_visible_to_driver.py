from __future__ import annotations

import re
from dataclasses import replace

import pytest

from helpers.facts import bus_id, gpu, gpus, host, kernel, lost_gpu, pci, pci_gpu
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Gpus, Host, KernelDriver, PciDevices, not_collected
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.visible_to_driver import visible_to_driver


def judged(*facts: FactGroup) -> Result:
    return compute_check(visible_to_driver, pci(4), gpus(4), kernel(4), host(), *facts)


def subjects(result: Result) -> list[str]:
    return [item.finding.subject for item in result.findings]


def test_all_gpus_visible_passes_and_switches_are_ignored() -> None:
    result = judged()
    assert result.status is Status.PASS
    assert [item.subject for item in result.evidence] == [f"GPU {i} ({bus_id(i)})" for i in range(4)]


def test_gpu_missing_in_nvml_is_named_and_others_judged() -> None:
    result = judged(gpus(4, gpu(0), gpu(1), gpu(3)))
    assert result.status is Status.FAIL
    assert subjects(result) == [f"GPU at {bus_id(2)}"]
    assert len(result.evidence) == 3


def test_lost_gpu_is_reported_by_gpu_responding() -> None:
    result = judged(gpus(4, gpu(0), lost_gpu(1), gpu(2), gpu(3)))
    assert result.status is Status.PASS
    assert [item.subject for item in result.evidence] == [f"GPU {i} ({bus_id(i)})" for i in range(4)]
    assert "gpu.responding" in result.evidence[1].observed


@pytest.mark.parametrize("address", [None, bus_id(1)])
def test_lost_gpu_that_the_bus_does_not_show_is_unknown(address: str | None) -> None:
    on_bus = replace(pci(4), devices=tuple(device for device in pci(4).devices if device.bus_id != bus_id(1)))
    result = judged(gpus(4, gpu(0), replace(lost_gpu(1), bus_id=address), gpu(2), gpu(3)), on_bus)
    assert result.status is Status.UNKNOWN
    (unjudged,) = result.unjudged
    assert (unjudged.subject.split(" (")[0], unjudged.explained_by) == ("GPU 1", ("gpu.responding",))


def test_one_lost_gpu_does_not_explain_two_missing_ones() -> None:
    result = judged(gpus(4, gpu(0), lost_gpu(1), gpu(3)))
    assert result.status is Status.FAIL
    assert subjects(result) == [f"GPU at {bus_id(1)}", f"GPU at {bus_id(2)}"]


@pytest.mark.parametrize("error", ["GpuIsLost", "NVML_ERROR_RESET_REQUIRED", "NVMLError_GpuIsLost"])
def test_gpu_lost_during_reading_is_reported_by_gpu_responding(error: str) -> None:
    broken = gpu(1, memory_used_bytes=None, errors={"memory_used_bytes": error})
    result = judged(gpus(4, gpu(0), broken, gpu(2), gpu(3)))
    assert result.status is Status.PASS
    assert [item.subject for item in result.evidence] == [f"GPU {i} ({bus_id(i)})" for i in range(4)]


@pytest.mark.parametrize(
    ("driver", "status"), [(None, Status.FAIL), ("nouveau", Status.FAIL), ("vfio-pci", Status.PASS)]
)
def test_gpu_bound_to_other_driver(driver: str | None, status: Status) -> None:
    devices = pci(2, pci_gpu(0), pci_gpu(1, driver=driver))
    result = judged(devices, gpus(1))
    assert result.status is status
    if driver == "nouveau":
        assert "sudo rm /etc/modprobe.d/blacklist-nouveau.conf" in result.findings[0].finding.rollback.commands


def test_container_with_some_gpus_of_host_passes() -> None:
    result = judged(gpus(2), kernel(2), host(container="docker"))
    assert result.status is Status.PASS
    assert [item.subject for item in result.evidence][2:] == [bus_id(2), bus_id(3)]


def test_container_with_lost_gpu_fails() -> None:
    result = judged(gpus(2), kernel(3), host(container="docker"))
    assert result.status is Status.FAIL


@pytest.mark.parametrize("container", ["docker", None])
def test_missing_gpu_is_unknown_in_possible_container(container: str | None) -> None:
    assert judged(gpus(2), kernel(0), host(container=container)).status is Status.UNKNOWN


def test_possible_container_without_nodes_is_unknown() -> None:
    assert judged(gpus(2), kernel(2), host(container=None)).status is Status.UNKNOWN


def test_unread_bus_id_may_be_missing_one() -> None:
    unread = gpu(1, bus_id=None, errors={"bus_id": "Unknown"})
    result = judged(gpus(4, gpu(0), unread, gpu(2), gpu(3)))
    assert result.status is Status.UNKNOWN
    assert re.search(r"GPU 1: .*\(Unknown\)", result.reason or "")


def test_gpus_missing_on_bus_are_unknown() -> None:
    assert judged(PciDevices(devices=())).status is Status.UNKNOWN


@pytest.mark.parametrize("group", [PciDevices, Gpus, Host])
def test_missing_evidence_is_unknown(group: type[FactGroup]) -> None:
    result = compute_check(visible_to_driver, pci(), gpus(), kernel(), host(), missing={group: "hung"})
    assert result.status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("driver", "status"), [("nvidia", Status.FAIL), (None, Status.UNKNOWN), ("vfio-pci", Status.PASS)]
)
def test_recorded_gpu_that_nvidia_smi_does_not_list(driver: str | None, status: Status) -> None:
    devices = pci(3, pci_gpu(0), pci_gpu(1), pci_gpu(2, driver=driver))
    recording: dict[type[FactGroup], str] = {group: not_collected(group).unavailable for group in (KernelDriver, Host)}
    result = compute_check(visible_to_driver, devices, gpus(2), missing=recording)
    assert result.status is status
    assert subjects(result) == ([f"GPU at {bus_id(2)}"] if status is Status.FAIL else [])


def test_recorded_gpu_that_lspci_does_not_list_is_unknown() -> None:
    recording: dict[type[FactGroup], str] = {group: not_collected(group).unavailable for group in (KernelDriver, Host)}
    result = compute_check(visible_to_driver, pci(1), gpus(2), missing=recording)
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == [f"GPU 0 ({bus_id(0)})"]


def test_container_without_any_gpu_does_not_pass() -> None:
    result = judged(gpus(0), kernel(0), host(container="docker"))
    assert (result.status, len(result.unjudged)) == (Status.UNKNOWN, 4)


@pytest.mark.parametrize("missing", [KernelDriver, Host])
def test_gpu_may_be_hidden_if_the_nodes_or_the_container_are_not_recorded(missing: type[FactGroup]) -> None:
    given = [fact for fact in (kernel(2), host(container="docker")) if not isinstance(fact, missing)]
    recorded: dict[type[FactGroup], str] = {missing: not_collected(missing).unavailable}
    devices = pci(3, pci_gpu(0), pci_gpu(1), pci_gpu(2, driver=None))
    result = compute_check(visible_to_driver, devices, gpus(2), *given, missing=recorded)
    assert [item.subject for item in result.unjudged] == [bus_id(2)]
