from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from helpers.facts import bus_id, environment, geforce, geforces, gpu, gpus, nvlinks, pair, smoke_case, smoke_run
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Gpus, NvLink, SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.bandwidth import bandwidth


def run(gbs: float | None = 300.0, replicas: int = 8, **changes: Any) -> SmokeRun:
    values: dict[str, Any] = {
        "measures": {} if gbs is None else {"all_reduce_gbs": gbs},
        "bus_ids": tuple(bus_id(index) for index in range(replicas)),
        **changes,
    }
    return smoke_run("smoke.speed", replicas, smoke_case("throughput", replicas, **values))


def judge(result: SmokeRun, machine: Gpus, *more: FactGroup, **parameters: Any) -> Result:
    return compute_check(bandwidth, result, machine, environment(), *more, **parameters)


def test_bandwidth_of_nvlinks_adds_up() -> None:
    # 18 links of 26.562 GB/s, as NVML gives them on an H100: 478.1 GB/s
    result = judge(run(300.0), gpus(8))
    assert (result.status, result.severity) == (Status.PASS, Severity.WARNING)
    assert all(
        text in result.evidence[0].observed for text in ("300 GB/s", "63%", "478.1 GB/s of NV18", "GPU 0 - GPU 1")
    )


def test_slowest_active_link_of_a_pair_is_the_reference() -> None:
    # 18 links of 20 GB/s: 360 GB/s
    slow = gpu(1, nvlinks=nvlinks(18, speed_gbs=20.0))
    assert "360 GB/s of NV18" in judge(run(300.0, 2), gpus(2, gpu(0), slow)).evidence[0].observed
    inactive, unread = NvLink(index=18, active=False, speed_gbs=1.0), NvLink(index=19, active=True)
    odd = gpu(1, nvlinks=(*nvlinks(18), inactive, unread))
    assert "478.1 GB/s of NV18" in judge(run(300.0, 2), gpus(2, gpu(0), odd)).evidence[0].observed


def test_unused_nvlink_is_a_warning() -> None:
    result = judge(run(12.0), gpus(8))
    assert result.status is Status.FAIL
    assert "12 GB/s, 3% of the 478.1 GB/s" in result.findings[0].finding.observed
    assert "15%" in result.findings[0].finding.expected
    assert judge(run(12.0), gpus(8), least_share=0.01).status is Status.PASS


def test_disabling_variable_is_named_with_its_rollback() -> None:
    result = judge(run(12.0), gpus(8), environment(NCCL_P2P_DISABLE="1"))
    finding = result.findings[0].finding
    assert finding.observed.endswith("; NCCL_P2P_DISABLE=1 is set")
    assert finding.remedy.commands[0] == "unset NCCL_P2P_DISABLE"
    assert finding.rollback.commands == ("export NCCL_P2P_DISABLE=1",)


def test_several_variables_are_named_in_one_sentence() -> None:
    result = judge(run(12.0), gpus(8), environment(NCCL_ALGO="Tree", NCCL_P2P_DISABLE="1"))
    finding = result.findings[0].finding
    assert finding.observed.endswith("; NCCL_P2P_DISABLE=1, NCCL_ALGO=Tree are set")
    assert set(finding.remedy.commands) == {"unset NCCL_P2P_DISABLE", "unset NCCL_ALGO"}
    alone = judge(run(12.0), gpus(8)).findings[0].finding
    assert (alone.remedy.commands, alone.rollback.commands) == ((), ())
    assert "set" not in alone.observed


@pytest.mark.parametrize(("measured", "status"), [(0.25, Status.PASS), (0.2499, Status.FAIL)])
def test_bandwidth_may_be_as_low_as_the_parameter_says(measured: float, status: Status) -> None:
    gbs = measured * 18 * 26.562
    assert judge(run(gbs), gpus(8), least_share=0.25).status is status


@pytest.mark.parametrize(("gbs", "status"), [(15.0, Status.PASS), (1.5, Status.FAIL)])
def test_pcie_is_the_reference_without_nvlink(gbs: float, status: Status) -> None:
    # generation 4, 16 lanes: 16 GT/s * 16 / 8 * 128/130 = 31.5 GB/s
    result = judge(run(gbs, 2), geforces(2))
    assert result.status is status
    observed = result.evidence[0].observed if result.evidence else result.findings[0].finding.observed
    assert "31.5 GB/s of PCIe (PHB)" in observed


def test_weakest_pair_is_the_reference() -> None:
    machine = geforces(3, devices=(geforce(0), geforce(1), geforce(2, pcie_width_max=4)))
    assert "7.876 GB/s" in judge(run(5.0, 3), machine).evidence[0].observed


def test_narrow_link_is_compared_with_its_maximum_width() -> None:
    narrow = geforces(2, devices=(geforce(0), geforce(1, pcie_width=1, performance_state=0)))
    assert judge(run(1.5, 2), narrow).status is Status.FAIL


@pytest.mark.parametrize(
    "machine",
    [
        gpus(8, pairs=()),
        gpus(8, pairs=tuple(pair(a, b, nvlinks=None) for a, b in combinations(range(8), 2))),
        gpus(8, *(gpu(index, nvlinks=None) for index in range(8))),
        geforces(8, devices=tuple(geforce(index, pcie_width_max=None) for index in range(8))),
    ],
    ids=["no pairs", "nvlinks unread", "speeds unread", "width unread"],
)
def test_unread_links_are_unknown(machine: Gpus) -> None:
    assert judge(run(), machine).status is Status.UNKNOWN


def test_is_unknown_without_time_or_gpu_addresses() -> None:
    assert judge(run(None), gpus(8)).status is Status.UNKNOWN
    assert judge(run(bus_ids=()), gpus(8)).status is Status.UNKNOWN
    assert compute_check(bandwidth, run()).status is Status.UNKNOWN


def test_is_skipped_on_cpu_devices_and_one_replica() -> None:
    cpu = smoke_run("smoke.speed", 2, *run(3.0, 2).cases, devices_kind="cpu")
    assert (judge(cpu, gpus(8)).status, "one CPU" in (judge(cpu, gpus(8)).reason or "")) == (Status.SKIP, True)
    assert judge(run(None, 1), gpus(8)).status is Status.SKIP


def test_unfinished_training_is_unknown() -> None:
    assert judge(run(outcome="timed-out"), gpus(8)).status is Status.UNKNOWN
