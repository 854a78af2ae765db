from __future__ import annotations

from helpers.facts import kernel, node
from helpers.judging import compute_check
from kdoctor.model import Severity, Status
from kdoctor_checks.driver.unified_memory_node import unified_memory_node


def test_it_is_there_on_a_healthy_machine() -> None:
    assert compute_check(unified_memory_node, kernel(2)).status is Status.PASS


def test_its_absence_warns() -> None:
    result = compute_check(unified_memory_node, kernel(1, nodes=(node("/dev/nvidia0"), node("/dev/nvidiactl"))))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert result.findings[0].finding.observed == "not among the 2 device nodes"


def test_under_wsl_there_is_no_subject_and_unread_nodes_are_unknown() -> None:
    assert compute_check(unified_memory_node, kernel(0, loaded=False, nodes=())).status is Status.SKIP
    assert compute_check(unified_memory_node, kernel(2, nodes=None)).status is Status.UNKNOWN
