"""No check passes if any of its evidence is missing."""

from __future__ import annotations

import functools
import re
from dataclasses import fields, replace
from typing import Any

import pytest

from helpers.facts import (
    H100_LACKS,
    NOT_SUPPORTED,
    cpu_host,
    environment,
    geforces,
    gpu,
    gpus,
    h100_node,
    host,
    kernel,
    lost_gpu,
    pci,
    v100_workstation,
)
from helpers.facts.base import SITE
from helpers.fleets import fleet
from helpers.rdma import device, network, two_hosts
from kdoctor.check import Check
from kdoctor.engine.report import Result
from kdoctor.facts import (
    Diagnostics,
    Environment,
    FactGroup,
    Gpu,
    Gpus,
    Host,
    JobHosts,
    KerasChoice,
    Kernel,
    KernelDriver,
    KernelLog,
    Libraries,
    Network,
    PciDevices,
    SmokeRun,
    SmokeRuns,
    TensorFlowBuild,
)
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import ASSUMPTIONS, Assumptions, GpuAssumption, Status
from kdoctor.testing import compute_check
from kdoctor_checks import checks
from kdoctor_checks.gpu.readings import readings

CHECKS = [check for check in checks() if check.scenario is None]

STATED = Assumptions(
    python=">=3.10,<3.14",
    packages={"tensorflow": "~=2.21.0"},
    gpus=GpuAssumption(count=8, model="NVIDIA H100*"),
    environment={"NCCL_P2P_DISABLE": "unset"},
    framework={"tensorflow": "~=2.21.0", "keras": "~=3.15", "flavour": "keras", "backend": "tensorflow"},
    sdk={"cuda": "~=12.5"},
    driver=">=580",
    libraries={"cudnn": ">=9.3"},
    flags={"keras.floatx": "float32"},
    image="job/train:*",
)

LOG_CHECKS = {
    "driver.memory-regions",
    "gpu.kernel-log",
    "gpu.application-xids",
    "gpu.logged-remapping",
    "topology.iommu-faults",
    "topology.logged-pcie-errors",
    "topology.nvswitch-errors",
    "topology.nvswitch-warnings",
}
"""Checks that are skipped if the kernel log was not read. driver.kernel-log is then unknown."""

HOST_LOG_CHECKS = {"host.kernel-errors"}
"""Checks of the kernel log that need no GPU."""

OF_TOOLS = {"gpu.diagnostics", "gpu.diagnostic-warnings"}
"""Checks that are skipped without the output of a diagnostic tool, as on most machines."""

WORDING_ONLY = {
    ("driver.loaded", PciDevices),
    ("driver.loaded", Host),
    ("driver.loaded", Kernel),
    ("driver.loaded", KernelLog),
    ("driver.libcuda-found", Host),
    ("gpu.responding", PciDevices),
    ("gpu.responding", KernelLog),
    ("gpu.count-expected", PciDevices),
    ("topology.nvlink", PciDevices),
    ("topology.pcie-generation", PciDevices),
    ("topology.pcie-width", PciDevices),
    ("topology.nvlink-direct", PciDevices),
    ("topology.numa", PciDevices),
    ("topology.acs", Gpus),
    ("topology.acs-settings", Gpus),
    ("versions.known-bad", KerasChoice),
    *(
        (check_id, PciDevices)
        for check_id in (
            "environment.visible-devices",
            "host.locked-memory",
            "host.shared-memory",
            "versions.cuda-build",
            "versions.cuda-libraries",
            "versions.cudnn-for-build",
            "versions.libraries-searched",
            "versions.xla-files",
        )
    ),
    ("topology.pcie-errors", Gpus),
    ("network.port-state", JobHosts),
    *(
        (f"network.{name}", Environment)
        for name in (
            *("port-state", "port-rate", "port-errors", "gpu-affinity", "gpudirect", "mtu", "clock", "port-free"),
            *("hosts-resolve", "hosts-reverse", "hosts-reachable"),
        )
    ),
    ("topology.pcie-path", Gpus),
    *((check_id, group) for check_id in LOG_CHECKS for group in (Gpus, PciDevices)),
}
"""Groups that a check does not need on a healthy machine. They describe the cause of a failure, name its subject, or
show whether it does harm or matters yet."""

JUDGED_IN_PART = {
    ("versions.runtime-expected", TensorFlowBuild),
    ("versions.runtime-expected", KerasChoice),
    ("versions.runtime-expected", Gpus),
    ("versions.runtime-expected", Libraries),
    ("versions.runtime-expected", Host),
    ("environment.variables-expected", KerasChoice),
    ("gpu.count-expected", Environment),
    ("gpu.responding", Gpus),
    ("topology.pcie-generation", Gpus),
    ("topology.pcie-width", Gpus),
    ("driver.loaded", KernelDriver),
    ("driver.library-matches-module", KernelDriver),
    ("network.nccl-devices", Network),
    ("network.nccl-interfaces", Network),
    *(
        (f"network.{name}", JobHosts)
        for name in ("hosts-resolve", "hosts-reverse", "hosts-reachable", "port-free", "mtu", "clock")
    ),
}
"""Groups without which a check judges only its other assumptions, and is unknown."""

NOT_ON_H100 = {
    "gpu.fan",
    "gpu.retired-pages",
    "gpu.retired-pages-pending",
    "topology.fabric-manager",
    "topology.nvlink-direct",
    "topology.p2p-geforce",
    "topology.p2p-trusted",
}
"""Checks without a subject on the healthy H100 node."""

NO_GPU_READ = LOG_CHECKS | {
    "driver.kernel-log",
    "host.locked-memory",
    "host.shared-memory",
    "versions.cuda-build",
    "versions.cuda-libraries",
    "versions.cuda-libraries-match",
    "versions.cudnn-for-build",
    "versions.libraries-searched",
    "versions.libraries-shadowed",
    "versions.xla-files",
}
"""Checks for GPU jobs that read no GPU. A machine without GPUs can pass them."""

READ_FOR_WORDS = """
    uuid performance_state architecture ecc_corrected_volatile ecc_corrected_aggregate ecc_uncorrected_aggregate
    remapped_rows_correctable remapped_rows_uncorrectable temperature_c temperature_slowdown_margin_c
    temperature_shutdown_margin_c temperature_slowdown_c temperature_shutdown_c power_draw_w clock_sm_mhz
    clock_sm_max_mhz clock_memory_mhz clock_memory_max_mhz utilization_gpu_percent utilization_memory_percent
    virtualization_mode addressing_mode cpu_affinity numa_affinity gpu_numa_id fan_speed_percent
    retired_pages_single_bit retired_pages_double_bit retired_pages_pending graphics_processes inforom_valid
""".split()  # noqa: SIM905 - a list of thirty quoted names is harder to read
"""Fields of a GPU that no check needs to pass on the H100 node. They describe a finding, matter on other GPUs or on
faulty ones, or have a second source (the CPUs near a GPU)."""

READ_BY: dict[str, set[str]] = {
    "index": set(),
    "name": {"gpu.model-expected", "gpu.same-model"},  # driver.forward-compatibility only with a compat libcuda
    "bus_id": {"gpu.visible-to-driver", "network.gpu-affinity"},
    "compute_capability": {
        "gpu.same-model",
        "versions.cudnn-for-gpus",
        "versions.driver-for-ptx",
        "versions.gpu-code",
        "versions.known-hazards",
    },
    "memory_total_bytes": {"gpu.resizable-bar", "gpu.same-model"},
    "memory_used_bytes": {"gpu.free"},
    "processes": {"gpu.free"},
    "pcie_generation": {"topology.pcie-generation"},
    "pcie_generation_max": {"topology.pcie-generation", "topology.pcie-slot"},
    "pcie_generation_gpu_max": {"topology.pcie-slot"},
    "pcie_replay_counter": {"topology.pcie-replays"},
    "minor_number": {"driver.device-nodes"},
    "bar1_total_bytes": {"gpu.resizable-bar"},
    "compute_mode": {"gpu.compute-mode", "gpu.exclusive-mode"},
    "persistence_mode": {"gpu.persistence-mode"},
    "mig_mode": {"gpu.mig-mode", "gpu.mig-mode-pending"},
    "mig_mode_pending": {"gpu.mig-mode-pending"},
    "ecc_mode": {"gpu.ecc-mode"},
    "ecc_mode_pending": {"gpu.ecc-mode"},
    "ecc_uncorrected_volatile": {"gpu.ecc-errors"},
    "sram_threshold_exceeded": {"gpu.sram-errors"},
    "remapped_rows_pending": {"gpu.row-remapping-pending"},
    "remapped_rows_failure": {"gpu.row-remapping"},
    "channel_repair_pending": {"gpu.repair-pending"},
    "tpc_repair_pending": {"gpu.repair-pending"},
    "unrepairable_memory": {"gpu.unrepairable-memory"},
    "recovery_action": {"gpu.recovery-action"},
    "temperature_margin_c": {"gpu.temperature"},
    "enforced_power_limit_w": {"gpu.equal-power-limits", "gpu.power-limit"},
    "default_power_limit_w": {"gpu.power-limit"},
    "clock_event_reasons": {"gpu.clocks", "gpu.clocks-limited", "gpu.thermal-slowdown"},
    "nvlinks": {"topology.nvlink", "topology.nvlink-direct"},
    "fabric_state": {"topology.fabric"},
    "fabric_status": {"topology.fabric"},
    "fabric_problems": {"topology.fabric"},
    "answers_s": {"gpu.response-time"},
    "pcie_width": {"topology.pcie-width"},
    "pcie_width_max": {"topology.pcie-width"},
    "errors": set(),
    **{name: set[str]() for name in READ_FOR_WORDS},
}
"""Field of a GPU to the checks that need it to pass on a healthy machine."""


NETWORK = (
    network(*(device(index) for index in range(8))),
    two_hosts(),
    environment(
        LD_LIBRARY_PATH=f"{SITE}/nvidia/cusolver/lib", NCCL_IB_HCA="mlx5", NCCL_SOCKET_IFNAME="eth", TF_CONFIG="{}"
    ),
)
"""The job of two machines, with an RDMA device next to each GPU."""
MACHINE = (*h100_node(8), host(image="job/train:2", image_from="KDOCTOR_IMAGE"), *NETWORK, fleet(4))


def judged(check: Check, *facts: FactGroup, assumptions: Assumptions = STATED) -> Result:
    return compute_check(check, *MACHINE, *facts, assumptions=assumptions)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_healthy_machine_passes_with_evidence(check: Check) -> None:
    result = judged(check)
    # The environment of the fixtures has no other packages.
    if check.id in NOT_ON_H100 | OF_TOOLS | {"versions.other-conflicts"}:
        assert result.status is Status.SKIP
    else:
        assert (result.status, result.reason) == (Status.PASS, None)
        assert result.evidence


@pytest.mark.parametrize(
    ("check", "group"),
    [(check, group) for check in CHECKS for group in check.facts.values() if group not in (Assumptions, VersionMatrix)],
    ids=lambda item: item.id if isinstance(item, Check) else item.__name__,
)
def test_unavailable_group_does_not_pass(check: Check, group: type[FactGroup]) -> None:
    missing: dict[type[FactGroup], str] = {SmokeRuns if group is SmokeRun else group: "the probe hung"}
    result = compute_check(check, *MACHINE, assumptions=STATED, missing=missing)
    if (check.id, group) in WORDING_ONLY:
        assert result.status is healthy_status(check)
    elif check.id in OF_TOOLS:
        assert result.status is Status.SKIP
    elif check.id in LOG_CHECKS | HOST_LOG_CHECKS:
        assert result.status is Status.SKIP
        assert "driver.kernel-log" in (result.reason or "")
    else:
        assert result.status is Status.UNKNOWN
        reasons = [item.reason for item in result.unjudged] if (check.id, group) in JUDGED_IN_PART else [result.reason]
        assert set(reasons) == {"the probe hung"}


def test_every_tolerated_group_is_listed() -> None:
    tolerated = {(check.id, check.facts[name]) for check in CHECKS for name in check.tolerant}
    logs = {(check_id, KernelLog) for check_id in LOG_CHECKS | HOST_LOG_CHECKS}
    assert tolerated == WORDING_ONLY | JUDGED_IN_PART | logs | {(check_id, Diagnostics) for check_id in OF_TOOLS}


def test_every_field_of_a_gpu_is_listed() -> None:
    assert {field.name for field in fields(Gpu)} == set(READ_BY)


@functools.cache
def statuses() -> dict[str, Status]:
    return {check.id: judged(check).status for check in CHECKS}


def healthy_status(check: Check) -> Status:
    return statuses()[check.id]


def without(device: Gpu, field: str, error: str) -> Gpu:
    changes: dict[str, Any] = {field: None, "errors": {**device.errors, field: error}}
    return replace(device, **changes)


OLDER_DRIVER = {"NVML_ERROR_FUNCTION_NOT_FOUND"}
NEWEST = {"fabric_problems", "channel_repair_pending", "tpc_repair_pending", "unrepairable_memory"}
"""Fields that only the newest drivers report."""
READ_FIELDS = sorted(set(READ_BY) - {"index", "errors"} - set(H100_LACKS))


@pytest.mark.parametrize("field", READ_FIELDS)
@pytest.mark.parametrize("error", ["NVML_ERROR_UNKNOWN", NOT_SUPPORTED, "NVML_ERROR_FUNCTION_NOT_FOUND"])
def test_unread_field_of_one_gpu_does_not_pass(field: str, error: str) -> None:
    """Not even if NVML returns "not supported" for one GPU and a value for equal GPUs."""
    found = gpus(8, *(without(gpu(3), field, error) if index == 3 else gpu(index) for index in range(8)))
    for check in CHECKS:
        # If the GPUs do not report their registration, the process of the fabric manager is judged.
        if Gpus in check.facts.values() and check.id not in {"gpu.readings", "topology.fabric-manager"}:
            result = judged(check, found)
            expected = Status.UNKNOWN if check.id in READ_BY[field] else healthy_status(check)
            assert result.status is expected, check.id
            assert len(result.unjudged) <= 2, check.id
    status = judged(readings, found).status
    is_excused = error == NOT_SUPPORTED or field == "fabric_status" or (error in OLDER_DRIVER and field in NEWEST)
    assert status is (Status.PASS if is_excused else Status.UNKNOWN)


@pytest.mark.parametrize(
    ("machine", "field", "check_ids"),
    [
        ("v100", "retired_pages_single_bit", {"gpu.retired-pages"}),
        ("v100", "retired_pages_double_bit", {"gpu.retired-pages"}),
        ("v100", "retired_pages_pending", {"gpu.retired-pages-pending"}),
        ("v100", "temperature_c", {"gpu.temperature"}),
        ("v100", "temperature_slowdown_c", {"gpu.temperature"}),
        ("v100", "fan_speed_percent", {"gpu.fan"}),
        ("v100", "nvlinks", {"topology.nvlink-direct"}),
        ("geforce", "fan_speed_percent", {"gpu.fan"}),
        ("geforce", "temperature_c", {"gpu.fan"}),
        ("geforce", "performance_state", {"topology.pcie-generation"}),
    ],
)
def test_unread_field_of_other_gpu_families_does_not_pass(machine: str, field: str, check_ids: set[str]) -> None:
    others: tuple[FactGroup, ...] = v100_workstation() if machine == "v100" else (geforces(2), pci(2), kernel(2))
    healthy = next(group for group in others if isinstance(group, Gpus))
    *rest, last = healthy.devices
    broken = replace(healthy, devices=(*rest, without(last, field, "NVML_ERROR_UNKNOWN")))
    for check in CHECKS:
        if check.id in check_ids:
            assert judged(check, *others).status is not Status.UNKNOWN, check.id
            assert judged(check, *others, broken).status is Status.UNKNOWN, check.id


GROUP_FIELDS: dict[tuple[type[FactGroup], str], set[str]] = {
    (Host, "cpu_affinity"): {"host.cpus", "topology.numa"},
    (Host, "cpu_limit"): {"host.cpus"},
    (Host, "memory_total_bytes"): {"host.memory", "host.swap"},
    (Host, "memory_available_bytes"): {"host.memory"},
    (Host, "shm_total_bytes"): {"host.shared-memory"},
    (Host, "shm_free_bytes"): {"host.shared-memory"},
    (Host, "swap_total_bytes"): {"host.swap"},
    (Host, "swap_used_bytes"): {"host.swap"},
    (Host, "cpu_governors"): {"host.cpu-governor"},
    (Host, "transparent_hugepages"): {"host.huge-pages"},
    (Kernel, "iommu_groups"): {"topology.iommu"},
    (KernelDriver, "version"): {"driver.library-matches-module"},
    (KernelDriver, "nodes"): {"driver.device-nodes", "driver.unified-memory-node"},
    (Gpus, "driver_version"): {"driver.library-matches-module"},
    (Gpus, "count"): {"gpu.count-expected", "gpu.responding"},
    (Gpus, "conf_compute"): {"driver.confidential-computing"},
    (Gpus, "node_errors"): {"driver.device-nodes"},
}
"""Field of a group to the checks that need it to pass."""


@pytest.mark.parametrize(("group", "field"), GROUP_FIELDS, ids=lambda item: item if isinstance(item, str) else None)
def test_unread_field_of_a_group_does_not_pass(group: type[FactGroup], field: str) -> None:
    healthy = next(item for item in h100_node(8) if isinstance(item, group))
    for check in CHECKS:
        if check.id in GROUP_FIELDS[group, field]:
            assert judged(check, replace(healthy, **{field: None})).status is Status.UNKNOWN, check.id


@pytest.mark.parametrize(
    ("field", "check_ids"),
    [
        ("aer_correctable", {"topology.pcie-errors"}),
        ("aer_nonfatal", {"topology.pcie-errors"}),
        ("aer_fatal", {"topology.pcie-errors"}),
        ("path", {"topology.acs", "topology.acs-settings", "topology.pcie-errors", "topology.pcie-path"}),
    ],
)
def test_unread_field_of_a_pci_function_does_not_pass(field: str, check_ids: set[str]) -> None:
    one, *others = pci(8).devices
    unread: dict[str, Any] = {field: None}
    for check in CHECKS:
        if check.id in check_ids:
            found = judged(check, PciDevices(devices=(replace(one, **unread), *others)))
            assert found.status in {Status.UNKNOWN, Status.SKIP}, check.id


@pytest.mark.parametrize(
    ("field", "check_ids"),
    [
        ("acs_control", {"topology.acs", "topology.acs-settings"}),
        ("link_width_max", {"topology.pcie-path"}),
        ("link_speed_max", {"topology.pcie-path"}),
        ("aer_fatal", {"topology.pcie-errors"}),
    ],
)
def test_unread_field_of_a_bridge_does_not_pass(field: str, check_ids: set[str]) -> None:
    one, *others = pci(8).devices
    root, *below = one.path or ()
    unread: dict[str, Any] = {field: None}
    broken = replace(one, path=(replace(root, **unread), *below))
    for check in CHECKS:
        if check.id in check_ids:
            found = judged(check, PciDevices(devices=(broken, *others)))
            assert found.status in {Status.UNKNOWN, Status.SKIP}, check.id


@pytest.mark.parametrize("field", ["p2p_read", "p2p_write"])
def test_unread_field_of_a_pair_does_not_pass(field: str) -> None:
    one, *others = gpus(8).pairs
    unread: dict[str, Any] = {field: None, "errors": {field: "NVML_ERROR_UNKNOWN"}}
    broken = gpus(8, pairs=(replace(one, **unread), *others))
    (check,) = (check for check in CHECKS if check.id == "topology.p2p")
    assert judged(check, broken).status is Status.UNKNOWN


@pytest.mark.parametrize(
    "check", [check for check in CHECKS if Gpus in check.facts.values()], ids=lambda check: check.id
)
def test_lost_gpu_never_passes_and_does_not_affect_other_gpus(check: Check) -> None:
    found = gpus(8, *(lost_gpu(3) if index == 3 else gpu(index) for index in range(8)))
    result = judged(check, found)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    others = [subject for subject in named if subject.startswith("GPU ") and subject[:5] not in ("GPU 3", "GPU a")]
    pairs = [subject for subject in others if " - " in subject]
    assert set(others) <= set(pairs)
    assert all("GPU 3" in pair for pair in pairs)
    if result.status is Status.PASS and check.family in {"driver", "gpu", "topology"}:
        listed = {item.subject for item in result.evidence if item.subject.startswith("GPU ")}
        assert len(listed) in {0, 8}


@pytest.mark.parametrize("check", [check for check in CHECKS if check.needs_gpus], ids=lambda check: check.id)
def test_checks_of_gpus_are_skipped_without_gpus_and_never_pass_there(check: Check) -> None:
    none = Assumptions(gpus=GpuAssumption(count=0))
    assert compute_check(check, *cpu_host(), assumptions=none).status is Status.SKIP
    if check.id not in NO_GPU_READ:
        assert compute_check(check, *cpu_host(), assumptions=STATED).status is not Status.PASS


WITHOUT_GPUS: dict[str, tuple[FactGroup, ...]] = {
    "no GPU and no driver": cpu_host(),
    "no GPU": (*cpu_host(), kernel(0), gpus(0, count=0)),
    "no driver": (*cpu_host(), pci(8), kernel(0, loaded=False)),
    "driver that does not start": (*cpu_host(), pci(8), kernel(8), gpus(0, state="failed", error="Unknown Error")),
    "no permission": (*cpu_host(), pci(8), kernel(8), gpus(0, state="no-permission", error="no permission")),
}
ABOUT_GPUS = [check for check in CHECKS if check.family in {"gpu", "topology", "network"} or check.id in LOG_CHECKS]


@pytest.mark.parametrize("machine", WITHOUT_GPUS)
@pytest.mark.parametrize("check", ABOUT_GPUS, ids=lambda check: check.id)
def test_nothing_about_gpus_passes_without_a_gpu_of_the_driver(check: Check, machine: str) -> None:
    result = compute_check(check, *WITHOUT_GPUS[machine], assumptions=STATED)
    assert result.status is not Status.PASS
    assert result.evidence == () or result.findings


@pytest.mark.parametrize("check", ABOUT_GPUS, ids=lambda check: check.id)
def test_check_that_finds_nothing_to_judge_gives_the_reason(check: Check) -> None:
    for machine in (*WITHOUT_GPUS.values(), h100_node(1)):
        reason = compute_check(check, *machine, assumptions=STATED).reason
        assert "nothing to evaluate" not in (reason or "")


def mig_node() -> tuple[FactGroup, ...]:
    return (*MACHINE, gpus(8, *(gpu(index, mig_mode=True, mig_mode_pending=True) for index in range(8))))


@pytest.mark.parametrize("machine", ["one GPU", "MIG"])
@pytest.mark.parametrize("check", ABOUT_GPUS, ids=lambda check: check.id)
def test_pass_is_about_subjects_of_the_machine(check: Check, machine: str) -> None:
    facts = h100_node(1) if machine == "one GPU" else mig_node()
    result = compute_check(check, *facts, assumptions=STATED)
    count = 1 if machine == "one GPU" else 8
    named = {int(index) for item in result.evidence for index in re.findall(r"\bGPU (\d+)\b", item.subject)}
    assert named <= set(range(count))
    assert result.status is not Status.PASS or result.evidence


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_check_is_pure(check: Check) -> None:
    assert judged(check).evidence == judged(check).evidence


WRONG: dict[str, dict[str, Any]] = {
    "python": {"python": ">=3.12"},
    "packages": {"packages": {"tensorflow": "~=2.20.0"}},
    "gpus.count": {"gpus": GpuAssumption(count=4)},
    "gpus.model": {"gpus": GpuAssumption(model="NVIDIA A100*")},
    "environment": {"environment": {"NCCL_P2P_DISABLE": "1"}},
    "framework": {"framework": {"flavour": "tf-keras"}},
    "sdk": {"sdk": {"cuda": ">=13"}},
    "driver": {"driver": "<570"},
    "libraries": {"libraries": {"cudnn": "<9"}},
    "flags": {"flags": {"keras.floatx": "float64"}},
    "image": {"image": "job/serve:*"},
}
"""Name of an assumption to values that do not hold on the H100 node."""


@pytest.mark.parametrize(
    ("check", "assumption"),
    [(check, assumption) for check in CHECKS for assumption in check.judges],
    ids=lambda item: item.id if isinstance(item, Check) else item,
)
def test_assumption_that_does_not_hold_fails(check: Check, assumption: str) -> None:
    assert judged(check, assumptions=Assumptions(**WRONG[assumption])).status is Status.FAIL


def test_every_assumption_is_judged() -> None:
    assert {assumption for check in CHECKS for assumption in check.judges} == set(WRONG) == ASSUMPTIONS
