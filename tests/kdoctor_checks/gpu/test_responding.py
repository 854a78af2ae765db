from __future__ import annotations

import pytest

from helpers.facts import bus_id, gpu, gpus, h100_node, logged, lost_gpu, pci
from helpers.judging import compute_check
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Gpus
from kdoctor.model import Status
from kdoctor_checks import checks
from kdoctor_checks.gpu.responding import responding


def judged(*facts: FactGroup) -> Result:
    return compute_check(responding, gpus(4), pci(4), *facts)


def test_gpus_that_answer_pass() -> None:
    result = judged()
    assert result.status is Status.PASS
    assert [item.subject for item in result.evidence] == [f"GPU {index} ({bus_id(index)})" for index in range(4)]


def test_a_lost_gpu_condemns_itself_and_is_found_on_the_bus() -> None:
    result = judged(gpus(4, gpu(0), gpu(1), lost_gpu(2), gpu(3)))
    assert result.status is Status.FAIL
    (finding,) = (item.finding for item in result.findings)
    assert (finding.subject, finding.observed) == ("GPU 2", f"NVML says GpuIsLost ({bus_id(2)} on the bus)")
    assert len(result.evidence) == 3


def test_the_kernels_log_says_why() -> None:
    log = logged(f"[ 7.0] NVRM: Xid (PCI:{bus_id(2)[:-2]}): 79, pid=1, GPU has fallen off the bus.")
    result = judged(gpus(4, gpu(0), gpu(1), lost_gpu(2), gpu(3)), log)
    assert result.findings[0].finding.observed.endswith("the kernel logged: Xid 79 (fallen off the bus)")


@pytest.mark.parametrize("error", ["NVML_ERROR_GPU_IS_LOST", "NVML_ERROR_RESET_REQUIRED", "GPU is lost"])
def test_a_gpu_lost_in_the_middle_is_named_with_its_address(error: str) -> None:
    broken = gpu(1, memory_used_bytes=None, errors={"memory_used_bytes": error})
    result = judged(gpus(4, gpu(0), broken, gpu(2), gpu(3)))
    assert [item.finding.subject for item in result.findings] == [f"GPU 1 ({bus_id(1)})"]
    assert error in result.findings[0].finding.observed


def test_a_gpu_that_hangs_is_named_with_the_call() -> None:
    broken = gpu(1, power_draw_w=None, errors={"power_draw_w": "no answer within 8 s"})
    result = judged(gpus(4, gpu(0), broken, gpu(2), gpu(3)))
    assert result.findings[0].finding.observed == "the call for its power draw w hangs (no answer within 8 s)"
    assert "sudo nvidia-smi --gpu-reset -i 0000:20:00.0" in result.findings[0].finding.remedy.commands


@pytest.mark.parametrize("error", ["NVML_ERROR_NO_PERMISSION", "NVML_ERROR_OPERATING_SYSTEM", "NVML_ERROR_UNKNOWN"])
def test_a_gpu_that_could_not_be_opened_for_another_reason_is_unknown(error: str) -> None:
    result = judged(gpus(4, gpu(0), gpu(1), gpu(2), gpu(3, name=None, errors={"handle": error})))
    assert result.status is Status.UNKNOWN
    assert error in (result.reason or "")


def test_gpus_that_are_counted_but_not_listed_are_unknown() -> None:
    """Recorded: a truncated file with ``attached_gpus`` 4 and one ``<gpu>`` element."""
    result = judged(gpus(1, count=4))
    assert (result.status, result.reason) == (Status.UNKNOWN, "GPUs: NVML counts 4, but only 1 were read")
    assert judged(gpus(1, count=None)).status is Status.UNKNOWN


def test_a_gpu_that_says_nothing_of_itself_is_unknown() -> None:
    assert judged(gpus(1, gpu(0, name=None, uuid=None, bus_id=None))).status is Status.UNKNOWN


def test_missing_evidence_is_unknown() -> None:
    assert compute_check(responding, pci(4), missing={Gpus: "hung"}).status is Status.UNKNOWN


def test_no_other_check_tells_of_a_gpu_that_does_not_answer() -> None:
    for broken in (
        lost_gpu(7),
        gpu(7, power_draw_w=None, processes=None, errors={"power_draw_w": "no answer within 8 s"}),
    ):
        found = gpus(8, *(gpu(index) for index in range(7)), broken)
        for check in checks():
            # Where the bus id is not told, PCI's devices cannot be told apart by the checks of packages.
            if check.family in {"driver", "gpu", "topology", "host"} and check.id not in {
                "gpu.responding",
                "gpu.count-expected",
                "gpu.replicas-match",
            }:
                result = compute_check(check, *h100_node(8), found)
                assert result.status in {Status.PASS, Status.SKIP}, (check.id, result.reason)
