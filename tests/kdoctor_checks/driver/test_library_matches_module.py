from __future__ import annotations

from helpers.facts import DRIVER, gpus, kernel
from helpers.judging import compute_check
from kdoctor.facts import Gpus, KernelDriver
from kdoctor.model import Action, Status
from kdoctor_checks.driver.library_matches_module import library_matches_module


def test_passes_where_both_have_one_version() -> None:
    result = compute_check(library_matches_module, kernel(), gpus())
    assert result.status is Status.PASS
    assert result.evidence[0].observed == f"module and library {DRIVER} (open)"


def test_fails_where_nvml_refuses_the_module() -> None:
    # Recorded: the module of 580.173.02 under the library of 580.178.
    module = kernel(version="580.173.02")
    library = Gpus(state="library-mismatch", error="Driver/library version mismatch")
    result = compute_check(library_matches_module, module, library)
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert finding.observed == (
        "kernel module 580.173.02, library of another version (Driver/library version mismatch)"
    )
    assert finding.remedy.action is Action.REBOOT
    assert "nvidia-driver-580=580.173.02-*" in finding.rollback.commands[0]


def test_fails_where_the_versions_differ_although_nvml_started() -> None:
    result = compute_check(library_matches_module, kernel(version="570.124.06"), gpus(driver_version="570.158.01"))
    assert result.status is Status.FAIL
    assert result.findings[0].finding.expected == "both of version 570.124.06"


def test_a_mismatch_with_an_unread_module_has_no_way_back() -> None:
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
