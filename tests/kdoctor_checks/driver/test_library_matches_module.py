from __future__ import annotations

from helpers.facts import DRIVER, gpus, kernel
from kdoctor.facts import FactGroup, Gpus, KernelDriver, not_collected
from kdoctor.model import Action, Status
from kdoctor.testing import compute_check
from kdoctor_checks.driver.library_matches_module import library_matches_module


def test_equal_versions_pass() -> None:
    result = compute_check(library_matches_module, kernel(), gpus())
    assert result.status is Status.PASS
    assert DRIVER in result.evidence[0].observed
    assert "open" in result.evidence[0].observed


def test_library_that_rejects_the_module_fails() -> None:
    # Recorded: the module of 580.173.02 under the library of 580.178.
    module = kernel(version="580.173.02")
    library = Gpus(state="library-mismatch", error="Driver/library version mismatch")
    result = compute_check(library_matches_module, module, library)
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert "580.173.02" in finding.observed
    assert "Driver/library version mismatch" in finding.observed
    assert finding.remedy.action is Action.REBOOT
    assert "nvidia-driver-580=580.173.02-*" in finding.rollback.commands[0]


def test_different_versions_fail_even_if_nvml_starts() -> None:
    result = compute_check(library_matches_module, kernel(version="570.124.06"), gpus(driver_version="570.158.01"))
    assert result.status is Status.FAIL
    assert "570.124.06" in result.findings[0].finding.expected


def test_mismatch_with_an_unread_module_cannot_be_rolled_back() -> None:
    result = compute_check(library_matches_module, kernel(version=None), Gpus(state="library-mismatch"))
    assert result.status is Status.FAIL
    assert result.findings[0].finding.rollback.kind == "irreversible"


def test_unread_versions_are_unknown() -> None:
    for module, library in (
        (kernel(version=None), gpus()),
        (kernel(), gpus(driver_version=None)),
        (kernel(), Gpus(state="failed", error="Unknown Error")),
        (KernelDriver(loaded=False), Gpus(state="library-absent")),
    ):
        assert compute_check(library_matches_module, module, library).status is Status.UNKNOWN


def test_recorded_mismatch_fails_without_the_module() -> None:
    unread: dict[type[FactGroup], str] = {KernelDriver: not_collected(KernelDriver).unavailable}
    result = compute_check(library_matches_module, Gpus(state="library-mismatch"), missing=unread)
    assert result.status is Status.FAIL
    assert compute_check(library_matches_module, gpus(), missing=unread).status is Status.UNKNOWN


def test_driver_that_does_not_respond_has_its_reason() -> None:
    for state, why in ((Gpus(state="failed", error="it hung"), "it hung"), (Gpus(state="failed"), "failed")):
        result = compute_check(library_matches_module, kernel(), state)
        assert [item.reason for item in result.unjudged] == [f"NVML is not ready: {why}"]


def test_versions_that_are_known_are_in_the_headline() -> None:
    library = Gpus(state="library-mismatch")
    (found,) = compute_check(library_matches_module, kernel(version="580.173.02"), library).findings
    assert found.finding.headline == "library does not match kernel module 580.173.02"
    (unknown,) = compute_check(library_matches_module, kernel(version=None), library).findings
    assert unknown.finding.headline == "library and kernel module have different versions"
