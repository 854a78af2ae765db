from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import environment, gpu, gpus, host, lost_gpu, pci
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Gpus
from kdoctor.model import Assumptions, GpuAssumption, Status
from kdoctor.testing import compute_check
from kdoctor_checks.environment.visible_devices import visible_devices


def judged(value: str | None, *facts: FactGroup, count: int | None = None, **variables: str) -> Result:
    named = variables if value is None else {"CUDA_VISIBLE_DEVICES": value, **variables}
    wanted = Assumptions(gpus=GpuAssumption(count=count))
    return compute_check(visible_devices, gpus(4), host(), environment(**named), *facts, assumptions=wanted)


UUIDS = [f"GPU-{index:08x}-1111-2222-3333-444444444444" for index in range(4)]


@pytest.mark.parametrize(
    ("value", "visible"),
    [
        (None, 4),
        ("0,1,2,3", 4),
        ("3,2", 2),
        (" 0 , 1 ", 2),
        ("0", 1),
        (UUIDS[2], 1),
        (f"{UUIDS[1]},{UUIDS[0]}", 2),
        ("GPU-00000003", 1),
        ("1gpu,2ampere", 2),
    ],
)
def test_valid_values_pass_with_the_number_of_visible_gpus(value: str | None, visible: int) -> None:
    result = judged(value)
    assert result.status is Status.PASS
    observed = result.evidence[0].observed
    assert ("4 GPUs" if value is None else f"{visible} of 4 GPUs") in observed


@pytest.mark.parametrize(
    ("value", "invalid", "visible"),
    [
        ("", None, 0),
        ("-1", "-1", 0),
        ("NoDevFiles", "NoDevFiles", 0),
        ("0,2,-1,1", "-1", 2),  # NVIDIA's example
        ("0,4,1", "4", 1),
        ("0,,1", "", 1),
        ("0,1,", "", 2),
        ("1,1", "1", 0),  # a GPU that is named twice hides all
        (f"{UUIDS[0]},{UUIDS[0]}", UUIDS[0], 0),
        ("GPU-", "GPU-", 0),  # ambiguous
        ("GPU-ffff", "GPU-ffff", 0),
        (f"{UUIDS[0]},1", "1", 1),  # an index after a UUID
        (f"0,{UUIDS[1]}", UUIDS[1], 1),
    ],
)
def test_values_that_hide_gpus_fail_at_the_first_invalid_entry(value: str, invalid: str | None, visible: int) -> None:
    result = judged(value)
    assert result.status is Status.FAIL
    observed = result.findings[0].finding.observed
    assert observed.endswith(f"{visible} of 4 GPUs visible")
    if invalid is not None:
        assert f" from {invalid!r}: " in observed


def test_rollback_restores_the_recorded_value() -> None:
    assert judged("0,9 9").findings[0].finding.rollback.commands == ("export CUDA_VISIBLE_DEVICES='0,9 9'",)


def test_fewer_visible_gpus_than_expected_fail() -> None:
    assert judged("0,1", count=4).status is Status.FAIL
    assert judged("0,1", count=2).status is Status.PASS


def test_lost_gpu_keeps_its_index() -> None:
    found = gpus(3, gpu(0), lost_gpu(1), gpu(2))
    assert judged("0,1,2", found).status is Status.PASS
    assert judged("0,1,2,3", found).status is Status.FAIL


def test_mig_instances_and_unread_uuids_are_unknown() -> None:
    assert judged("MIG-GPU-8932f937/1/2").status is Status.UNKNOWN
    assert judged("GPU-ffff", gpus(2, gpu(0), gpu(1, uuid=None))).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("value", "order", "status"),
    [
        ("0", None, Status.FAIL),
        ("0", "FASTEST_FIRST", Status.FAIL),
        ("0", "PCI_BUS_ID", Status.PASS),
        ("0,1", None, Status.PASS),  # all GPUs, so the order does not matter
        (UUIDS[0], None, Status.PASS),
        (None, None, Status.PASS),
    ],
)
def test_indices_of_unequal_gpus_need_the_bus_order(value: str | None, order: str | None, status: Status) -> None:
    mixed = gpus(2, gpu(0), gpu(1, name="Tesla T4", compute_capability="7.5"))
    variables: dict[str, Any] = {} if order is None else {"CUDA_DEVICE_ORDER": order}
    assert judged(value, mixed, **variables).status is status


def test_indices_of_gpus_without_a_name_are_unknown() -> None:
    assert judged("0", gpus(2, gpu(0), gpu(1, name=None))).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("asked", "container", "status"),
    [
        ("all", "docker", Status.PASS),
        ("void", "kubernetes", Status.PASS),
        ("0,1,2,3", "docker", Status.PASS),
        ("0,1,2,3,4", "docker", Status.FAIL),
        ("0,1,2,3,4", "none", Status.PASS),
    ],
)
def test_gpus_are_compared_with_the_request_to_the_container_runtime(
    asked: str, container: str, status: Status
) -> None:
    assert judged(None, host(container=container), NVIDIA_VISIBLE_DEVICES=asked).status is status


def test_failing_driver_is_unknown() -> None:
    assert judged("0", Gpus(state="failed", error="Unknown Error")).status is Status.UNKNOWN
    assert compute_check(visible_devices, gpus(4), host()).status is Status.UNKNOWN


def test_driver_without_gpus_is_unknown() -> None:
    result = judged(None, gpus(0, devices=(), count=0))
    assert result.status is Status.UNKNOWN
    assert "driver.loaded" in result.unjudged[0].explained_by


@pytest.mark.parametrize(("on_the_bus", "explained_by"), [(5, ("gpu.visible-to-driver",)), (4, ())])
def test_index_of_a_gpu_that_the_driver_lost_is_explained(on_the_bus: int, explained_by: tuple[str, ...]) -> None:
    finding = judged("0,1,2,3,4", pci(on_the_bus)).findings[0].finding
    assert finding.explained_by == explained_by
    assert finding.brief.endswith("4 of 4 GPUs visible")
    assert finding.remedy.commands == ("unset CUDA_VISIBLE_DEVICES",)
