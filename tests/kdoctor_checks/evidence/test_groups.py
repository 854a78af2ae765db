"""No check passes if a group of facts that it needs is unavailable."""

import pytest

from helpers.checks import ALL
from helpers.evidence.checks import CHECKS, LOG_CHECKS, NOT_ON_H100, healthy_status, judged
from helpers.evidence.machines import MACHINE, STATED
from kdoctor.check import Check
from kdoctor.facts import FactGroup, SmokeRun, SmokeRuns
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Assumptions, Status
from kdoctor.testing import compute_check

OF_TOOLS = {"gpu.diagnostics", "gpu.diagnostic-warnings"}
"""Checks that are skipped without the output of a diagnostic tool, as on most machines."""

WORDING_ONLY = {
    ("driver.loaded", "PciDevices"),
    ("driver.loaded", "Host"),
    ("driver.loaded", "Kernel"),
    ("driver.loaded", "KernelLog"),
    ("driver.loaded", "VersionMatrix"),
    ("driver.libcuda-found", "Host"),
    ("gpu.responding", "PciDevices"),
    ("gpu.responding", "KernelLog"),
    ("gpu.responding", "KernelDriver"),
    ("gpu.count-expected", "PciDevices"),
    ("topology.nvlink", "PciDevices"),
    ("topology.pcie-generation", "PciDevices"),
    ("topology.pcie-width", "PciDevices"),
    ("topology.nvlink-direct", "PciDevices"),
    ("topology.numa", "PciDevices"),
    ("topology.acs", "Gpus"),
    ("topology.acs-settings", "Gpus"),
    ("versions.known-bad", "KerasChoice"),
    ("versions.packages-intact", "Environment"),
    *(
        (check_id, "PciDevices")
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
    ("topology.pcie-errors", "Gpus"),
    ("network.port-state", "JobHosts"),
    *(
        (f"network.{name}", "Environment")
        for name in (
            *("port-state", "port-rate", "port-errors", "gpu-affinity", "gpudirect", "mtu", "clock", "port-free"),
            *("hosts-resolve", "hosts-reverse", "hosts-reachable"),
        )
    ),
    ("topology.pcie-path", "Gpus"),
    *((check_id, group) for check_id in LOG_CHECKS for group in ("Gpus", "PciDevices")),
}
"""Groups that a check does not need on a healthy machine. They describe the cause of a failure, name its subject, or
show whether it does harm or matters yet."""

JUDGED_IN_PART = {
    ("versions.runtime-expected", "TensorFlowBuild"),
    ("versions.runtime-expected", "KerasChoice"),
    ("versions.runtime-expected", "Gpus"),
    ("versions.runtime-expected", "Libraries"),
    ("versions.runtime-expected", "Host"),
    ("environment.variables-expected", "KerasChoice"),
    ("gpu.count-expected", "Environment"),
    ("gpu.responding", "Gpus"),
    ("gpu.visible-to-driver", "KernelDriver"),
    ("gpu.visible-to-driver", "Host"),
    ("topology.pcie-generation", "Gpus"),
    ("topology.pcie-width", "Gpus"),
    ("driver.loaded", "Gpus"),
    ("driver.loaded", "KernelDriver"),
    ("driver.library-matches-module", "KernelDriver"),
    ("watch.kernel-log", "KernelLog"),
    *(("versions.tensorflow-installed", group) for group in ("Packages", "Target", "TensorFlowBuild")),
    ("network.nccl-devices", "Network"),
    ("network.nccl-interfaces", "Network"),
    *(
        (f"network.{name}", "JobHosts")
        for name in ("hosts-resolve", "hosts-reverse", "hosts-reachable", "port-free", "mtu", "clock")
    ),
}
"""Groups without which a check judges only its other assumptions, and is unknown."""

FAIL_ANYWAY = {"versions.keras-features", "versions.jax-installed"}
"""Checks that fail with every release of Keras 3, or without JAX."""


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_healthy_machine_passes_with_evidence(check: Check) -> None:
    result = judged(check)
    # The environment of the fixtures has no other packages.
    if check.id in NOT_ON_H100 | OF_TOOLS | {"versions.other-conflicts"}:
        assert result.status is Status.SKIP
    elif check.id in FAIL_ANYWAY:
        assert result.status is Status.FAIL
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
    pair = (check.id, group.__name__)
    if pair in WORDING_ONLY:
        assert result.status is healthy_status(check)
    elif check.id in OF_TOOLS:
        assert result.status is Status.SKIP
    elif check.id in LOG_CHECKS:
        assert result.status is Status.SKIP
        assert "driver.kernel-log" in (result.reason or "")
    else:
        assert result.status is Status.UNKNOWN
        reasons = [item.reason for item in result.unjudged] if pair in JUDGED_IN_PART else [result.reason]
        assert set(reasons) == {"the probe hung"}


def test_every_tolerated_group_is_listed() -> None:
    tolerated = {(check.id, check.facts[name].__name__) for check in CHECKS for name in check.tolerant}
    assert tolerated == {(check_id, group) for check_id, group in WORDING_ONLY | JUDGED_IN_PART if check_id in ALL}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_check_is_pure(check: Check) -> None:
    assert judged(check).evidence == judged(check).evidence
