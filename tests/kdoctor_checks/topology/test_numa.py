from __future__ import annotations

import re

from helpers.facts import gpu, gpus, host, near, pci, pci_gpu
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, NumaNode
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.numa import numa


def judged(*facts: FactGroup) -> Result:
    return compute_check(numa, gpus(8), host(), pci(8), *facts)


def test_unbound_process_passes() -> None:
    assert judged().status is Status.PASS


def test_process_bound_to_other_socket_warns() -> None:
    result = judged(host(cpu_affinity=near(0)))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert [item.finding.subject[:5] for item in result.findings] == [f"GPU {index}" for index in range(4, 8)]
    assert result.findings[0].finding.remedy.commands == ("taskset -pc 0-223 $$",)


def test_memory_of_other_node_only_warns() -> None:
    """A cpuset of a batch system with CPUs of all nodes and memory of node 0."""
    result = judged(host(memory_nodes=(0,)))
    assert [item.finding.subject[:5] for item in result.findings] == [f"GPU {index}" for index in range(4, 8)]
    assert re.search(r"node 1\b.*node 0\b", result.findings[0].finding.observed)
    assert len(result.evidence) == 4


def test_memory_nodes_that_were_not_read_are_unknown() -> None:
    assert judged(host(memory_nodes=None)).status is Status.UNKNOWN


def test_driver_affinity_is_used_without_numa_nodes() -> None:
    assert judged(host(numa_nodes=None, memory_nodes=(0,))).status is Status.FAIL
    nowhere = gpus(8, *(gpu(index, numa_affinity=None) for index in range(8)))
    assert judged(host(numa_nodes=None), nowhere).status is Status.UNKNOWN


def test_one_nearby_cpu_is_enough() -> None:
    assert judged(host(cpu_affinity=(0, 223))).status is Status.PASS


def test_gpu_without_affinity_is_unknown() -> None:
    """Recorded: two RTX 3090, NUMA affinity N/A on one."""
    unread = gpu(0, cpu_affinity=None, numa_affinity=None, errors={"cpu_affinity": "N/A"})
    result = compute_check(numa, gpus(2, unread, gpu(1)), host(), pci(2, pci_gpu(0, local_cpus=None), pci_gpu(1)))
    assert (result.status, len(result.evidence)) == (Status.UNKNOWN, 1)
    assert re.fullmatch(r"GPU 0 \(0000:10:00\.0\): .*\(N/A\)", result.reason or "")


def test_kernel_affinity_is_used_without_driver_affinity() -> None:
    unread = gpus(8, *(gpu(index, cpu_affinity=None) for index in range(8)))
    assert judged(unread).status is Status.PASS
    assert judged(unread, host(cpu_affinity=near(0))).status is Status.FAIL


def test_single_numa_node_is_skipped_and_gpu_memory_nodes_are_ignored() -> None:
    """POWER9 and Grace show GPU memory as NUMA nodes without CPUs."""
    one = (NumaNode(index=0, cpus=near(0)), NumaNode(index=250, cpus=()))
    assert judged(host(numa_nodes=one)).status is Status.SKIP


def test_unread_affinity_is_unknown() -> None:
    assert judged(host(cpu_affinity=None)).status is Status.UNKNOWN
