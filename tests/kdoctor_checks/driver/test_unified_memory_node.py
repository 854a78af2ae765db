from __future__ import annotations

from helpers.facts import kernel, node
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.driver.unified_memory_node import unified_memory_node


def test_existing_node_passes() -> None:
    assert compute_check(unified_memory_node, kernel(2)).status is Status.PASS


def test_missing_node_warns() -> None:
    result = compute_check(unified_memory_node, kernel(1, nodes=(node("/dev/nvidia0"), node("/dev/nvidiactl"))))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert result.findings[0].finding.subject == "/dev/nvidia-uvm"


def test_wsl_is_skipped_and_unread_nodes_are_unknown() -> None:
    assert compute_check(unified_memory_node, kernel(0, loaded=False, nodes=())).status is Status.SKIP
    assert compute_check(unified_memory_node, kernel(2, nodes=None)).status is Status.UNKNOWN
