from __future__ import annotations

import re

from helpers.facts import gpu, gpus
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.pcie_slot import pcie_slot


def test_slot_as_fast_as_gpu_passes() -> None:
    assert compute_check(pcie_slot, gpus(2)).status is Status.PASS


def test_slower_slot_is_note() -> None:
    """Recorded: an RTX 4090 in a host of generation 3."""
    slow = gpu(1, pcie_generation_max=3, pcie_generation_gpu_max=4)
    result = compute_check(pcie_slot, gpus(2, gpu(0), slow))
    assert (result.status, result.severity) == (Status.FAIL, Severity.INFO)
    assert re.search(r"generation 3\b.*\b4$", result.findings[0].finding.observed)
    (look,) = result.findings[0].finding.remedy.look
    assert look == "sudo lspci -vv -s 0000:20:00.0 | grep -E 'LnkCap:|LnkCap2:'"


def test_unread_generation_is_unknown() -> None:
    for error in ("Unknown", "NVML_ERROR_FUNCTION_NOT_FOUND"):
        broken = gpu(1, pcie_generation_gpu_max=None, errors={"pcie_generation_gpu_max": error})
        assert compute_check(pcie_slot, gpus(2, gpu(0), broken)).status is Status.UNKNOWN
