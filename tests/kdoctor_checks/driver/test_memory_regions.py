from __future__ import annotations

from helpers.facts import log, logged
from kdoctor.facts import KernelLog
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.driver.memory_regions import memory_regions


def test_log_without_the_failure_passes() -> None:
    assert compute_check(memory_regions, log()).status is Status.PASS


def test_failure_gets_the_option_of_the_module_and_a_rollback() -> None:
    line = "[ 9.1] nvidia-uvm: uvm_pmm_gpu.c:3434 uvm_pmm_devmem_init[pid:1] request_free_mem_region() err -34"
    result = compute_check(memory_regions, logged(line))
    assert (result.status, result.severity) == (Status.FAIL, Severity.ERROR)
    finding = result.findings[0].finding
    assert finding.remedy.commands[0] == (
        "echo 'options nvidia_uvm uvm_disable_hmm=1' | sudo tee /etc/modprobe.d/nvidia-uvm-hmm.conf"
    )
    assert finding.rollback.commands[0] == "sudo rm /etc/modprobe.d/nvidia-uvm-hmm.conf"


def test_unread_log_is_skipped() -> None:
    assert compute_check(memory_regions, missing={KernelLog: "no"}).status is Status.SKIP
