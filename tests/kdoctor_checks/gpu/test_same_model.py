from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import MIB, gpu, gpus, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.same_model import same_model


def test_equal_gpus_pass() -> None:
    result = compute_check(same_model, gpus(8))
    assert result.status is Status.PASS
    assert result.evidence[0].observed == "NVIDIA H100 80GB HBM3, compute capability 9.0, 79.6 GiB"


@pytest.mark.parametrize(
    "change", [{"name": "NVIDIA H100 PCIe"}, {"compute_capability": "8.0"}, {"memory_total_bytes": 40960 * MIB}]
)
def test_different_gpu_is_named(change: dict[str, Any]) -> None:
    result = compute_check(same_model, gpus(3, gpu(0), gpu(1, **change), gpu(2)))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert [item.finding.subject for item in result.findings] == ["GPU 1 (0000:20:00.0)"]
    assert len(result.evidence) == 2


def test_memory_may_differ_within_tolerance() -> None:
    def status(used: int, **parameters: Any) -> Status:
        found = gpus(3, gpu(0), gpu(1), gpu(2, memory_total_bytes=used * MIB))
        return compute_check(same_model, found, **parameters).status

    assert status(81559 - 1631) is Status.PASS  # 2 % of 81559 MiB is 1631.18 MiB
    assert status(81559 - 1632) is Status.FAIL
    assert status(81559 - 1632, memory_tolerance=0.05) is Status.PASS


def test_one_gpu_is_skipped_and_none_does_not_pass() -> None:
    assert compute_check(same_model, gpus(1)).status is Status.SKIP
    assert compute_check(same_model, gpus(0)).status is Status.SKIP


@pytest.mark.parametrize("field", ["name", "compute_capability", "memory_total_bytes"])
def test_unread_field_is_unknown(field: str) -> None:
    result = compute_check(same_model, gpus(3, gpu(0), gpu(1, **{field: None}), gpu(2)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.unjudged] == ["GPU 1 (0000:20:00.0)"]
    assert len(result.evidence) == 2


@pytest.mark.parametrize(
    ("change", "status"),
    [({}, Status.PASS), ({"name": "NVIDIA H100 NVL"}, Status.FAIL), ({"name": None}, Status.UNKNOWN)],
)
def test_without_any_compute_capability_the_name_counts(change: dict[str, Any], status: Status) -> None:
    unread: dict[str, Any] = {"compute_capability": None, "errors": {"compute_capability": "not in nvidia-smi -q"}}
    imported = [gpu(index, **unread, **(change if index == 1 else {})) for index in range(3)]
    result = compute_check(same_model, gpus(3, *imported))
    assert result.status is status
    assert result.evidence[0].observed == "NVIDIA H100 80GB HBM3, 79.6 GiB"


def test_fix_names_the_identical_gpus() -> None:
    odd = gpus(3, gpu(0, uuid="GPU-a"), gpu(1, uuid="GPU-b"), gpu(2, name="NVIDIA L4", uuid="GPU-c"))
    (found,) = compute_check(same_model, odd).findings
    assert found.finding.remedy.commands == ("export CUDA_VISIBLE_DEVICES=GPU-a,GPU-b",)
    unnamed = gpus(3, gpu(0), gpu(1, uuid=None), gpu(2, name="NVIDIA L4"))
    (found,) = compute_check(same_model, unnamed).findings
    assert found.finding.remedy.commands == ("export CUDA_DEVICE_ORDER=PCI_BUS_ID", "export CUDA_VISIBLE_DEVICES=0,1")


def test_lost_gpu_is_unknown_and_the_others_are_compared() -> None:
    result = compute_check(same_model, gpus(3, gpu(0), lost_gpu(1), gpu(2)))
    assert [item.subject[:5] for item in result.unjudged] == ["GPU 1"]
    assert [item.subject[:5] for item in result.evidence] == ["GPU 0", "GPU 2"]
    assert "79.6 GiB" in result.evidence[0].observed


def test_capability_that_only_one_gpu_lacks_is_unknown() -> None:
    unprinted: dict[str, Any] = {"compute_capability": None, "errors": {"compute_capability": "not in nvidia-smi -q"}}
    result = compute_check(same_model, gpus(3, gpu(0), gpu(1, **unprinted), gpu(2)))
    assert [item.subject for item in result.unjudged] == ["GPU 1 (0000:20:00.0)"]
    every = gpus(2, *(gpu(index, **unprinted) for index in range(2)))
    assert compute_check(same_model, every).status is Status.PASS
