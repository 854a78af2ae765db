from collections.abc import Iterator

import pytest

from kdoctor.check import Check, check
from kdoctor.facts import FactGroup, Gpus, Host, PciDevices, SmokeRun
from kdoctor.model import Finding, Outcome, Status
from kdoctor.testing import compute_check, healthy, with_gpu
from kdoctor_checks import checks
from kdoctor_checks.gpu.ecc_errors import ecc_errors
from kdoctor_checks.host.shared_memory import shared_memory
from kdoctor_checks.smoke.baseline import baseline

CHECKS = [one for one in checks() if one.scenario in {None, "smoke.baseline"} and one.id != "versions.keras-features"]
"""The node has a run of smoke.baseline only, and Keras 3 with its known defects."""


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_no_builtin_check_fails_on_the_healthy_node(check: Check) -> None:
    groups = [group for group in check.facts.values() if issubclass(group, FactGroup)]
    assert compute_check(check, *map(healthy, groups)).status in {Status.PASS, Status.SKIP}


def test_changed_field_fails_the_check() -> None:
    assert compute_check(shared_memory, healthy(Host), healthy(Gpus)).status is Status.PASS
    small = healthy(Host, shm_total_bytes=64 * 2**20, shm_free_bytes=64 * 2**20)
    assert compute_check(shared_memory, small, healthy(Gpus)).status is Status.FAIL


def test_changed_gpu_is_the_subject() -> None:
    gpus = with_gpu(healthy(Gpus), 3, ecc_uncorrected_volatile=2)
    result = compute_check(ecc_errors, gpus)
    assert [item.finding.subject for item in result.findings] == [gpus.devices[3].subject]


def test_missing_group_is_unknown() -> None:
    result = compute_check(ecc_errors, healthy(Gpus), missing={Gpus: "permission denied"})
    assert (result.status, result.reason) == (Status.UNKNOWN, "permission denied")


def test_smoke_run_is_that_of_the_checks_scenario() -> None:
    run = healthy(SmokeRun)
    assert run.scenario == "smoke.baseline"
    assert compute_check(baseline, run, healthy(PciDevices)).status is Status.PASS


@check("site.scratch")
def scratch(host: Host, *, works: bool = True) -> Iterator[Outcome]:
    """The scratch directory has space.

    Why: a full disk ends the job.
    Remedy: delete old checkpoints.
    Source: https://keras.io/api/callbacks/model_checkpoint/
    """
    if not works:
        raise OSError("no such disk")
    yield Finding(subject=host.os, observed="full", expected="space")


def test_finding_without_a_remedy_has_that_of_its_check() -> None:
    (found,) = compute_check(scratch, healthy(Host)).findings
    assert found.finding.remedy.summary == scratch.remedy == "Delete old checkpoints."


def test_error_of_a_check_is_raised_in_its_test() -> None:
    with pytest.raises(OSError, match="no such disk"):
        compute_check(scratch, healthy(Host), works=False)
