"""No check passes on evidence that is missing, whichever it is."""

from __future__ import annotations

from dataclasses import fields

import pytest

from helpers.facts import cpu_host, gpu, gpus, h100_node, lost_gpu
from helpers.judging import compute_check
from kdoctor.check import Check
from kdoctor.facts import FactGroup, Gpu, Gpus, Host, PciDevices, SmokeRun, SmokeRuns
from kdoctor.model import Assumptions, GpuAssumption, Result, Status
from kdoctor.version_matrix import VersionMatrix
from kdoctor_checks import checks

CHECKS = [check for check in checks() if check.family != "smoke"]

STATED = Assumptions(
    python=">=3.10,<3.14",
    packages={"tensorflow": "~=2.21.0"},
    gpus=GpuAssumption(count=8, model="NVIDIA H100*"),
    environment={"NCCL_P2P_DISABLE": "unset"},
)

WORDING_ONLY = {("driver.loaded", PciDevices), ("driver.loaded", Host), ("driver.libcuda-found", Host)}
"""Groups that a check takes unavailable because they only word the cause of a failure."""

NO_GPU_READ = {
    "host.shared-memory",
    "versions.cuda-build",
    "versions.cuda-libraries",
    "versions.cuda-libraries-match",
    "versions.cudnn-for-build",
    "versions.libraries-searched",
    "versions.libraries-shadowed",
    "versions.xla-files",
}
"""Checks that matter to GPU jobs only, but read no GPU: a machine without one can pass them."""

UNREAD = """
    architecture minor_number pcie_generation_gpu_max pcie_replay_counter bar1_total_bytes compute_mode
    persistence_mode mig_mode mig_mode_pending ecc_mode ecc_mode_pending ecc_corrected_volatile
    ecc_uncorrected_volatile ecc_corrected_aggregate ecc_uncorrected_aggregate sram_threshold_exceeded
    retired_pages_single_bit retired_pages_double_bit retired_pages_pending remapped_rows_correctable
    remapped_rows_uncorrectable remapped_rows_pending remapped_rows_failure recovery_action temperature_c
    temperature_slowdown_c temperature_shutdown_c temperature_margin_c temperature_slowdown_margin_c
    temperature_shutdown_margin_c fan_speed_percent power_draw_w enforced_power_limit_w default_power_limit_w
    clock_sm_mhz clock_sm_max_mhz clock_memory_mhz clock_memory_max_mhz clock_event_reasons
    utilization_gpu_percent utilization_memory_percent nvlinks fabric_state fabric_status virtualization_mode
    addressing_mode cpu_affinity numa_affinity gpu_numa_id
""".split()  # noqa: SIM905 - a list of fifty quoted names is harder to read
"""Fields of a GPU that no check reads (yet): a check that reads one moves it to ``READ_BY``."""

READ_BY: dict[str, set[str]] = {
    "index": set(),
    "name": {"gpu.model-expected", "gpu.same-model"},  # driver.forward-compatibility only beside a compat libcuda
    "uuid": set(),
    "bus_id": {"gpu.visible-to-driver"},
    "compute_capability": {
        "gpu.same-model",
        "versions.cudnn-for-gpus",
        "versions.driver-for-ptx",
        "versions.gpu-code",
        "versions.known-hazards",
    },
    "memory_total_bytes": {"gpu.same-model"},
    "memory_used_bytes": {"gpu.free"},
    "processes": {"gpu.free"},
    "pcie_generation": set(),
    "pcie_generation_max": set(),
    "pcie_width": {"topology.pcie-width"},
    "pcie_width_max": {"topology.pcie-width"},
    "performance_state": set(),  # read only of a narrow link
    "errors": set(),
    **{name: set[str]() for name in UNREAD},
}
"""Each field of a GPU to the checks whose pass on a healthy machine rests on it."""


def judged(check: Check, *facts: FactGroup, assumptions: Assumptions = STATED) -> Result:
    return compute_check(check, *h100_node(8), *facts, assumptions=assumptions)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_healthy_machine_passes_with_evidence(check: Check) -> None:
    result = judged(check)
    if check.id == "versions.other-conflicts":  # the builders' environment holds nothing else
        assert result.status is Status.SKIP
    else:
        assert (result.status, result.reason) == (Status.PASS, None)
        assert result.evidence


@pytest.mark.parametrize(
    ("check", "group"),
    [(check, group) for check in CHECKS for group in check.facts.values() if group not in (Assumptions, VersionMatrix)],
    ids=lambda item: item.id if isinstance(item, Check) else item.__name__,
)
def test_an_unavailable_group_is_no_pass(check: Check, group: type[FactGroup]) -> None:
    missing: dict[type[FactGroup], str] = {SmokeRuns if group is SmokeRun else group: "the probe hung"}
    result = compute_check(check, *h100_node(8), assumptions=STATED, missing=missing)
    if (check.id, group) in WORDING_ONLY:
        assert result.status is Status.PASS
    else:
        assert (result.status, result.reason) == (Status.UNKNOWN, "the probe hung")


def test_every_tolerated_group_is_accounted_for() -> None:
    tolerated = {(check.id, check.facts[name]) for check in CHECKS for name in check.tolerant}
    assert tolerated == WORDING_ONLY


def test_every_field_of_a_gpu_is_accounted_for() -> None:
    assert {field.name for field in fields(Gpu)} == set(READ_BY)


@pytest.mark.parametrize("field", sorted(set(READ_BY) - {"index", "errors"}))
def test_an_unread_field_of_one_gpu_is_no_pass_of_the_checks_that_read_it(field: str) -> None:
    broken = gpu(3, **{field: None}, errors={field: "Unknown"})
    found = gpus(8, *(broken if index == 3 else gpu(index) for index in range(8)))
    for check in CHECKS:
        if Gpus in check.facts.values():
            result = judged(check, found)
            expected = Status.UNKNOWN if check.id in READ_BY[field] else Status.PASS
            assert result.status is expected, check.id
            assert len(result.unjudged) <= 2, check.id


@pytest.mark.parametrize(
    "check", [check for check in CHECKS if Gpus in check.facts.values()], ids=lambda check: check.id
)
def test_a_lost_gpu_passes_nowhere_that_it_is_judged_and_condemns_no_other(check: Check) -> None:
    found = gpus(8, *(lost_gpu(3) if index == 3 else gpu(index) for index in range(8)))
    result = judged(check, found)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    others = [subject for subject in named if subject.startswith("GPU ") and subject[:5] not in ("GPU 3", "GPU a")]
    pairs = [subject for subject in others if " - " in subject]
    assert set(others) <= set(pairs)
    assert all("GPU 3" in pair for pair in pairs)


@pytest.mark.parametrize("check", [check for check in CHECKS if check.needs_gpus], ids=lambda check: check.id)
def test_checks_of_gpus_are_skipped_without_gpus_and_never_pass_there(check: Check) -> None:
    none = Assumptions(gpus=GpuAssumption(count=0))
    assert compute_check(check, *cpu_host(), assumptions=none).status is Status.SKIP
    if check.id not in NO_GPU_READ:
        status = compute_check(check, *cpu_host(), assumptions=STATED).status
        assert status in {Status.FAIL, Status.UNKNOWN}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_is_pure(check: Check) -> None:
    assert judged(check).evidence == judged(check).evidence


@pytest.mark.parametrize("check", [check for check in CHECKS if check.judges], ids=lambda check: check.id)
def test_a_check_of_an_assumption_notices_that_it_does_not_hold(check: Check) -> None:
    wrong = Assumptions(
        python=">=3.12",
        packages={"tensorflow": "~=2.20.0"},
        gpus=GpuAssumption(count=4, model="NVIDIA A100*"),
        environment={"NCCL_P2P_DISABLE": "1"},
    )
    assert judged(check, assumptions=wrong).status is Status.FAIL
