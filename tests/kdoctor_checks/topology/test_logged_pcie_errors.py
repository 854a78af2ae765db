from __future__ import annotations

import pytest

from helpers.facts import bus_id, gpu, gpus, log, logged, no_driver, pci
from kdoctor.facts import Gpus, KernelLog, PciDevices
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.kernel_log import kernel_log
from kdoctor_checks.topology.logged_pcie_errors import logged_pcie_errors

CORRECTED = "pcieport {}: AER: Corrected error received: {}"
FATAL = "pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: {}"


@pytest.mark.parametrize(
    ("times", "status"), [(0, Status.PASS), (1, Status.PASS), (2, Status.FAIL), (500, Status.FAIL)]
)
def test_corrected_errors_in_number_warn(times: int, status: Status) -> None:
    lines = [CORRECTED.format("0000:00:01.0", bus_id(1))] * times
    result = compute_check(logged_pcie_errors, gpus(4), pci(4), logged("usb 1-1: new device", *lines))
    assert (result.status, result.severity) == (status, Severity.WARNING)
    if status is Status.FAIL:
        (found,) = result.findings
        assert found.finding.subject == gpu(1).subject
        assert f"x{times}" in found.finding.observed


def test_uncorrected_error_warns_at_once() -> None:
    (found,) = compute_check(logged_pcie_errors, gpus(4), pci(4), logged(FATAL.format(bus_id(2)))).findings
    assert found.finding.subject == gpu(2).subject


def test_fatal_error_of_a_gpu_stops_the_job() -> None:
    facts = (gpus(4), pci(4), logged(FATAL.format(bus_id(2))))
    results = [compute_check(check, *facts) for check in (kernel_log, logged_pcie_errors)]
    assert [(result.status, result.severity) for result in results] == [
        (Status.FAIL, Severity.ERROR),
        (Status.FAIL, Severity.WARNING),
    ]
    first, second = (result.findings[0].finding for result in results)
    assert first.remedy.commands == ("sudo reboot",)
    assert second.explained_by == ("gpu.kernel-log",)


@pytest.mark.parametrize("text", [CORRECTED.format("0000:00:01.0", bus_id(2)), FATAL.format("0000:99:00.0")])
def test_other_pcie_error_does_not_stop_the_job(text: str) -> None:
    assert compute_check(kernel_log, gpus(4), pci(4), logged(text)).status is Status.PASS


def test_details_of_a_pcie_error_are_understood() -> None:
    details = ("  device [10de:2330] error status/mask=00040000/00400000", "   [18] MalfTLP                (First)")
    found = logged(*(f"nvidia {bus_id(2)}: {text}" for text in details))
    assert (found.unclassified, found.events) == (0, ())


def test_errors_of_other_devices_are_ignored_where_devices_are_known() -> None:
    lines = [CORRECTED.format("0000:00:1c.0", "0000:99:00.0")] * 9
    assert compute_check(logged_pcie_errors, gpus(4), pci(4), logged(*lines)).status is Status.PASS
    alone = {Gpus: "not in the log", PciDevices: "not in the log"}
    (found,) = compute_check(logged_pcie_errors, logged(*lines), missing=alone).findings
    assert found.finding.subject == "PCI 0000:99:00.0"


def test_one_fatal_error_of_several_explains_the_finding() -> None:
    lines = [f"nvidia {bus_id(1)}: AER: Uncorrected ({kind}) error received" for kind in ("Fatal", "Non-Fatal")]
    for found in (lines, lines[::-1]):
        (judged,) = compute_check(logged_pcie_errors, gpus(2), pci(2), logged(*found)).findings
        assert judged.finding.explained_by == ("gpu.kernel-log",)


def test_without_evidence_it_does_not_pass() -> None:
    assert compute_check(logged_pcie_errors, gpus(4), missing={KernelLog: "no"}).status is Status.SKIP
    assert compute_check(logged_pcie_errors, log(), *no_driver()).status is Status.SKIP


@pytest.mark.parametrize(
    ("address", "subject"),
    [("0000:0d:00.0", "PCI 0000:0d:00.0"), (bus_id(1), gpu(1).subject)],
    ids=["port above a GPU", "GPU that the bus does not list"],
)
def test_errors_of_ports_and_of_all_gpus_count(address: str, subject: str) -> None:
    line = f"pcieport {address}: AER: Uncorrected (Non-Fatal) error received: {address}"
    (found,) = compute_check(logged_pcie_errors, gpus(2), pci(1), logged(line)).findings
    assert found.finding.subject == subject
