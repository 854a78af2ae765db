from __future__ import annotations

import re

import pytest

from helpers.facts import bus_id, gpu, gpus, h100_node, logged, lost_gpu, pci, pci_gpu
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Gpu
from kdoctor.model import Finding, Status, Unjudged
from kdoctor.testing import compute_check
from kdoctor_checks import checks
from kdoctor_checks.gpu.responding import responding


def judged(*facts: FactGroup) -> Result:
    return compute_check(responding, gpus(4), pci(4), *facts)


def test_responding_gpus_pass() -> None:
    result = judged()
    assert result.status is Status.PASS
    assert [item.subject for item in result.evidence] == [f"GPU {index} ({bus_id(index)})" for index in range(4)]


def test_lost_gpu_fails_with_its_address() -> None:
    result = judged(gpus(4, gpu(0), gpu(1), lost_gpu(2), gpu(3)))
    assert result.status is Status.FAIL
    (finding,) = (item.finding for item in result.findings)
    assert finding.subject == f"GPU 2 ({bus_id(2)})"
    assert finding.remedy.commands == ("sudo reboot",)
    assert "GpuIsLost" in finding.observed
    assert len(result.evidence) == 3


@pytest.mark.parametrize(
    ("field", "error", "status"),
    [
        ("performance_state", "ERR!", Status.FAIL),
        ("performance_state", "Unknown Error", Status.FAIL),
        ("memory_used_bytes", "GPU requires reset", Status.FAIL),
        ("fan_speed_percent", "ERR!", Status.PASS),
        ("performance_state", "N/A", Status.PASS),
    ],
)
def test_gpu_with_an_error_in_place_of_its_state_does_not_respond(field: str, error: str, status: Status) -> None:
    result = judged(gpus(2, gpu(0), gpu(1, **{field: None}, errors={field: error})))
    assert result.status is status
    assert [item.finding.subject for item in result.findings] == ([gpu(1).subject] if status is Status.FAIL else [])


def test_kernel_log_adds_xid() -> None:
    log = logged(f"[ 7.0] NVRM: Xid (PCI:{bus_id(2)[:-2]}): 79, pid=1, GPU has fallen off the bus.")
    result = judged(gpus(4, gpu(0), gpu(1), lost_gpu(2), gpu(3)), log)
    finding = result.findings[0].finding
    assert "Xid 79" in finding.observed
    assert "Xid 79" in finding.brief


def test_headline_of_lost_gpu_names_the_xid() -> None:
    lost = gpus(4, gpu(0), gpu(1), lost_gpu(2), gpu(3))
    log = logged(f"[ 7.0] NVRM: Xid (PCI:{bus_id(2)[:-2]}): 119, pid=1, Timeout")
    assert judged(lost).findings[0].finding.headline == "lost"
    assert judged(lost, log).findings[0].finding.headline == "lost (Xid 119)"
    asks = gpu(1, errors={"memory_used_bytes": "NVML_ERROR_RESET_REQUIRED"})
    found = judged(gpus(4, gpu(0), asks, gpu(2), gpu(3))).findings[0].finding
    assert "reset" in found.headline
    assert found.remedy.commands == (f"sudo nvidia-smi --gpu-reset -i {bus_id(1)}",)


@pytest.mark.parametrize("error", ["NVML_ERROR_GPU_IS_LOST", "NVML_ERROR_RESET_REQUIRED", "GPU is lost"])
def test_gpu_lost_during_reading_is_named_with_address(error: str) -> None:
    broken = gpu(1, memory_used_bytes=None, errors={"memory_used_bytes": error})
    result = judged(gpus(4, gpu(0), broken, gpu(2), gpu(3)))
    assert [item.finding.subject for item in result.findings] == [f"GPU 1 ({bus_id(1)})"]
    assert error in result.findings[0].finding.observed


def test_hanging_gpu_is_named_with_the_call() -> None:
    broken = gpu(1, power_draw_w=None, errors={"power_draw_w": "no answer within 8 s"})
    result = judged(gpus(4, gpu(0), broken, gpu(2), gpu(3)))
    assert re.search(r"power draw.*no answer within 8 s", result.findings[0].finding.observed)
    assert "sudo nvidia-smi --gpu-reset -i 0000:20:00.0" in result.findings[0].finding.remedy.commands


@pytest.mark.parametrize("error", ["NVML_ERROR_UNKNOWN", "Unknown Error", "Not Found", "InsufficientPower"])
def test_gpu_that_the_driver_cannot_open_fails(error: str) -> None:
    result = judged(gpus(4, gpu(0), gpu(1), gpu(2), gpu(3, name=None, errors={"handle": error})))
    assert result.status is Status.FAIL
    (found,) = result.findings
    assert found.finding.subject == gpu(3).subject
    assert error in found.finding.headline


@pytest.mark.parametrize("error", ["NVML_ERROR_NO_PERMISSION", "NVML_ERROR_OPERATING_SYSTEM"])
def test_gpu_without_permission_is_unknown(error: str) -> None:
    result = judged(gpus(4, gpu(0), gpu(1), gpu(2), gpu(3, name=None, errors={"handle": error})))
    assert result.status is Status.UNKNOWN
    assert error in (result.reason or "")


def test_counted_but_unlisted_gpus_are_unknown() -> None:
    """Recorded: a truncated file with ``attached_gpus`` 4 and one ``<gpu>`` element."""
    result = judged(gpus(1, count=4))
    assert result.status is Status.UNKNOWN
    assert re.search(r"\b4\b.*\b1\b", result.reason or "")
    assert judged(gpus(1, count=None)).status is Status.UNKNOWN


def test_gpu_without_identity_is_unknown() -> None:
    assert judged(gpus(1, gpu(0, name=None, uuid=None, bus_id=None))).status is Status.UNKNOWN


def test_lost_gpu_is_the_only_cause() -> None:
    for broken in (
        lost_gpu(7),
        gpu(7, power_draw_w=None, processes=None, errors={"power_draw_w": "no answer within 8 s"}),
    ):
        found = gpus(8, *(gpu(index) for index in range(7)), broken)
        for check in checks():
            if check.family in {"driver", "gpu", "topology", "host"} and check.id not in {
                "gpu.responding",
                "gpu.count-expected",
                "gpu.replicas-match",
            }:
                result = compute_check(check, *h100_node(8), found)
                others: list[Finding | Unjudged] = [*result.unjudged, *(item.finding for item in result.findings)]
                assert {item.explained_by for item in others} <= {("gpu.responding",)}, (check.id, result.reason)


def test_configuration_space_of_all_ones_fails_without_the_driver() -> None:
    result = compute_check(responding, pci(2, pci_gpu(0), pci_gpu(1, responds=False)))
    (finding,) = (item.finding for item in result.findings)
    assert finding.subject == "GPU at 0000:20:00.0"
    assert finding.remedy.commands == ("sudo reboot",)
    assert compute_check(responding, pci(2)).status is Status.UNKNOWN


def test_lost_gpu_whose_configuration_space_is_gone_is_one_finding() -> None:
    listed = pci(2, pci_gpu(0), pci_gpu(1, responds=False))
    lost = gpu(1, errors={"name": "NVML_ERROR_GPU_IS_LOST"})
    (finding,) = compute_check(responding, gpus(2, gpu(0), lost), listed).findings
    assert finding.finding.subject == "GPU 1 (0000:20:00.0)"


def test_two_lost_gpus_without_address_are_named_in_the_order_of_the_bus() -> None:
    errors = {"handle": "NVML_ERROR_GPU_IS_LOST"}
    devices = [gpu(index) for index in range(4)]
    for index in (1, 3):
        devices[index] = Gpu(index=index, errors=errors)
    found = compute_check(responding, gpus(4, *devices), pci(4)).findings
    assert [item.finding.subject for item in found] == ["GPU 1 (0000:20:00.0)", "GPU 3 (0000:40:00.0)"]
    # With another order, an address could be that of either GPU.
    devices[0], devices[2] = gpu(0, bus_id=bus_id(2)), gpu(2, bus_id=bus_id(0))
    found = compute_check(responding, gpus(4, *devices), pci(4)).findings
    assert [item.finding.subject for item in found] == ["GPU 1", "GPU 3"]
