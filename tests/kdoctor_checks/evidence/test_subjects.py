"""A pass is about a subject that exists on this machine."""

import re

import pytest

from helpers.evidence.checks import CHECKS, LOG_CHECKS
from helpers.evidence.machines import MACHINE, STATED
from helpers.facts import cpu_host, gpu, gpus, h100_node, kernel, pci
from kdoctor.check import Check
from kdoctor.facts import FactGroup
from kdoctor.model import Assumptions, GpuAssumption, Status
from kdoctor.testing import compute_check

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
