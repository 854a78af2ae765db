from __future__ import annotations

from dataclasses import replace
from typing import Any

from helpers.facts import NOT_SUPPORTED, geforces, gpu, gpus, lost_gpu, nvlinks, pci, v100_workstation
from helpers.judging import compute_check
from kdoctor.engine.report import Result
from kdoctor.facts import Gpu, NvLink, PciDevices
from kdoctor.model import Severity, Status
from kdoctor_checks.topology.nvlink import nvlink


def judged(*devices: Gpu, **parameters: Any) -> Result:
    return compute_check(nvlink, gpus(len(devices), *devices), pci(8), **parameters)


def test_all_links_of_all_gpus_active_passes() -> None:
    result = judged(gpu(0), gpu(1))
    assert (result.status, result.severity) == (Status.PASS, Severity.ERROR)
    assert result.evidence[0].observed == "18 links active, each 26.562 GB/s"


def test_one_link_down_fails_and_names_the_gpu_and_the_link() -> None:
    result = judged(gpu(0), gpu(1, nvlinks=nvlinks(down=(3, 7))), gpu(2))
    (finding,) = (item.finding for item in result.findings)
    assert (finding.subject, finding.observed) == (
        "GPU 1 (0000:20:00.0)",
        "link 3, 7 inactive; 16 of 18 are active",
    )
    assert len(result.evidence) == 2


def test_all_links_of_a_module_down_fails() -> None:
    """Recorded: an A100 SXM4 all of whose links are inactive."""
    down = nvlinks(12, down=range(12))
    alone = gpus(1, gpu(0, name="NVIDIA A100-SXM4-80GB", nvlinks=down))
    result = compute_check(nvlink, alone, missing={PciDevices: "a dump"})
    assert result.findings[0].finding.observed == "all 12 links are inactive"


def test_a_card_without_a_bridge_is_no_subject() -> None:
    """An A100 PCIe lists twelve links, and without a bridge none is active."""
    card = gpu(0, name="NVIDIA A100 80GB PCIe", nvlinks=nvlinks(12, down=range(12)))
    result = compute_check(nvlink, gpus(1, card), PciDevices(devices=()))
    assert (result.status, result.reason) == (Status.SKIP, "no GPU is joined through NVSwitches")


def test_fewer_links_than_its_equals_fails() -> None:
    assert judged(gpu(0), gpu(1, nvlinks=nvlinks(17))).findings[0].finding.observed == (
        "17 links are active, and 18 are expected"
    )


def test_a_checklist_may_state_the_number() -> None:
    assert judged(gpu(0), least=18).status is Status.PASS
    assert judged(gpu(0), least=19).status is Status.FAIL


def test_a_link_slower_than_the_others_fails() -> None:
    *others, last = nvlinks()
    result = judged(gpu(0), gpu(1, nvlinks=(*others, replace(last, speed_gbs=20.0))))
    assert result.findings[0].finding.observed == "slower than the others: link 17 20 of 26.562 GB/s"


def test_a_link_that_was_not_read_is_unknown() -> None:
    *others, last = nvlinks()
    broken = NvLink(index=last.index, errors={"active": "NVML_ERROR_UNKNOWN"})
    result = judged(gpu(0), gpu(1, nvlinks=(*others, broken)))
    assert (result.status, result.reason) == (
        Status.UNKNOWN,
        "GPU 1 (0000:20:00.0): the state of 1 NVLinks was not read (NVML_ERROR_UNKNOWN)",
    )


def test_unread_links_are_unknown_and_cards_without_nvlink_no_subject() -> None:
    assert judged(gpu(0), gpu(1, nvlinks=None, errors={"nvlinks": "Unknown"})).status is Status.UNKNOWN
    assert judged(gpu(0), gpu(1, nvlinks=None, errors={"nvlinks": NOT_SUPPORTED})).status is Status.UNKNOWN
    assert compute_check(nvlink, geforces(2), pci(2)).status is Status.SKIP


def test_links_between_gpus_are_judged_apart() -> None:
    assert compute_check(nvlink, *v100_workstation()).status is Status.SKIP


def test_a_lost_gpu_is_left_out() -> None:
    assert judged(gpu(0), lost_gpu(1)).status is Status.PASS
