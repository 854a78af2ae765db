from __future__ import annotations

import pytest

from helpers.facts import environment, gpu, gpus, lost_gpu, pci
from kdoctor.engine.report import JudgedFinding, Result
from kdoctor.facts import Environment, FactGroup, Gpus, not_collected
from kdoctor.model import Action, Assumptions, GpuAssumption, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.count_expected import count_expected


def judged(found: Gpus, count: int | None = None, at_least: int | None = None, mask: str | None = None) -> Result:
    wanted = Assumptions(gpus=GpuAssumption(count=count, at_least=at_least))
    return compute_check(count_expected, found, visible(mask), assumptions=wanted)


def visible(mask: str | None) -> Environment:
    return environment() if mask is None else environment(CUDA_VISIBLE_DEVICES=mask)


@pytest.mark.parametrize(
    ("found", "count", "at_least", "status"),
    [
        (8, 8, None, Status.PASS),
        (7, 8, None, Status.FAIL),
        (9, 8, None, Status.FAIL),
        (1, None, 2, Status.FAIL),
        (2, None, 2, Status.PASS),
        (3, None, 2, Status.PASS),
        (1, None, None, Status.PASS),
        (0, None, None, Status.FAIL),
        (0, None, 0, Status.SKIP),
    ],
)
def test_count_is_compared_with_checklist(found: int, count: int | None, at_least: int | None, status: Status) -> None:
    assert judged(gpus(found, count=found), count, at_least).status is status


def test_without_gpu_assumptions_one_is_enough() -> None:
    assert compute_check(count_expected, gpus(1), environment()).status is Status.PASS


def test_lost_gpu_does_not_count() -> None:
    result = judged(gpus(3, gpu(0), lost_gpu(1), gpu(2)), count=3)
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert finding.observed.startswith("2 ")
    assert finding.observed.endswith("GPU 1")
    assert finding.remedy.action is Action.REBOOT
    assert finding.explained_by == ("gpu.responding",)


@pytest.mark.parametrize(
    ("count", "explained_by"),
    [
        (4, ("gpu.responding",)),
        (5, ("gpu.responding", "gpu.visible-to-driver")),
        (6, ()),
    ],
)
def test_missing_gpus_are_explained_if_as_many_are_lost_or_unlisted(count: int, explained_by: tuple[str, ...]) -> None:
    """Four listed, one of them lost, and a fifth on the PCI bus only."""
    found = gpus(4, gpu(0), gpu(1), gpu(2), lost_gpu(3))
    result = compute_check(count_expected, found, pci(5), assumptions=Assumptions(gpus=GpuAssumption(count=count)))
    assert result.findings[0].finding.explained_by == explained_by


@pytest.mark.parametrize(
    ("listed", "on_bus", "count", "explained_by"),
    [
        (3, 4, 4, ("gpu.responding", "gpu.visible-to-driver")),
        (3, 4, 5, ()),
        (3, 3, 4, ()),
        (3, 2, 4, ()),
    ],
)
def test_gpus_on_the_bus_alone_explain_as_many_missing_ones(
    listed: int, on_bus: int, count: int, explained_by: tuple[str, ...]
) -> None:
    wanted = Assumptions(gpus=GpuAssumption(count=count))
    result = compute_check(count_expected, gpus(listed), pci(on_bus), environment(), assumptions=wanted)
    assert result.findings[0].finding.explained_by == explained_by


def test_incomplete_list_of_gpus_is_unknown() -> None:
    assert judged(gpus(8, count=None, errors={"count": "Unknown"}), count=8).status is Status.UNKNOWN
    assert judged(gpus(1, gpu(0), count=4), count=1).status is Status.UNKNOWN
    assert judged(Gpus(state="failed", error="Unknown Error"), count=0).status is Status.SKIP
    assert judged(Gpus(state="failed", error="Unknown Error"), count=1).status is Status.UNKNOWN
    assert compute_check(count_expected).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (gpus(8, count=None, errors={"count": "Unknown"}), "Unknown"),
        (gpus(1, count=None), "it counts None and lists 1"),
        (gpus(1, count=4, errors={"count": "Unknown"}), "it counts 4 and lists 1"),
        (Gpus(state="failed", error="it hung"), "it hung"),
    ],
)
def test_incomplete_list_of_gpus_has_its_reason(found: Gpus, why: str) -> None:
    assert judged(found, count=1).reason == f"GPUs: not all listed by NVML ({why})"


@pytest.mark.parametrize(
    ("mask", "count", "status", "command"),
    [
        ("0,1,3,4,5,6,7", 7, Status.PASS, ""),
        (None, 7, Status.FAIL, "export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6"),
        ("0,1,3,4,5,6,7", 8, Status.FAIL, "unset CUDA_VISIBLE_DEVICES"),
        ("", 8, Status.FAIL, "unset CUDA_VISIBLE_DEVICES"),
        ("GPU-nothing-like-it", 8, Status.FAIL, "unset CUDA_VISIBLE_DEVICES"),
        ("MIG-1", 8, Status.UNKNOWN, ""),
    ],
)
def test_hidden_gpus_are_not_usable(mask: str | None, count: int, status: Status, command: str) -> None:
    result = judged(gpus(8), count=count, mask=mask)
    assert result.status is status
    assert "".join(item.finding.remedy.commands[-1] for item in result.findings) == command


def test_lost_gpu_that_is_hidden_does_not_matter() -> None:
    four = gpus(4, gpu(0), lost_gpu(1), gpu(2), gpu(3))
    assert judged(four, count=3, mask="0,2,3").status is Status.PASS
    assert judged(four, count=4, mask="0,1,2,3").findings[0].finding.remedy.action is Action.REBOOT


def test_fix_for_one_gpu_is_its_checklist() -> None:
    commands = judged(gpus(1), at_least=2).findings[0].finding.remedy.commands
    assert commands == ("kdoctor check --checklist single-gpu-keras",)


def test_recording_without_environment_counts_all_gpus() -> None:
    assert compute_check(count_expected, gpus(2)).status is Status.PASS
    hung = compute_check(count_expected, gpus(2), missing={Environment: "the probe hung"})
    assert hung.status is Status.UNKNOWN
    four = Assumptions(gpus=GpuAssumption(count=4))
    assert compute_check(count_expected, gpus(2), assumptions=four).status is Status.FAIL
    assert compute_check(count_expected, gpus(8), assumptions=four).status is Status.UNKNOWN


def test_faults_of_a_recorded_machine_come_before_its_number_of_gpus() -> None:
    (recorded,) = judged_without(Environment)
    assert {"gpu.kernel-log", "gpu.responding", "topology.nvlink"} <= set(recorded.finding.after)
    assert judged(gpus(1), at_least=2).findings[0].finding.after == ()


def judged_without(group: type[FactGroup]) -> tuple[JudgedFinding, ...]:
    """The findings on a recording of one GPU that lacks this group."""
    wanted = Assumptions(gpus=GpuAssumption(at_least=2))
    missing = {group: not_collected(group).unavailable}
    return compute_check(count_expected, gpus(1), assumptions=wanted, missing=missing).findings


@pytest.mark.parametrize(
    ("names", "value"),
    [
        (("NVIDIA A10",), "1 x NVIDIA A10"),
        (("NVIDIA A10", "NVIDIA L4", "NVIDIA A10"), "2 x NVIDIA A10, 1 x NVIDIA L4"),
        (("NVIDIA RTX 6000 Ada Generation", "NVIDIA GeForce RTX 4090", "Tesla V100S"), "3 GPUs of 3 models"),
        (("NVIDIA A10", None), "2 GPUs"),
    ],
)
def test_value_counts_the_gpus_of_each_model(names: tuple[str | None, ...], value: str) -> None:
    found = gpus(len(names), *(gpu(index, name=name) for index, name in enumerate(names)))
    assert [item.brief for item in compute_check(count_expected, found, environment()).evidence] == [value]


def test_value_leaves_out_lost_gpus() -> None:
    (found,) = compute_check(count_expected, gpus(2, gpu(0, name="NVIDIA A10"), lost_gpu(1)), environment()).evidence
    assert found.brief == "1 x NVIDIA A10"
