from __future__ import annotations

import pytest

from helpers.facts import gpu, gpus, kernel, lost_gpu, node
from helpers.judging import compute_check
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Gpus, KernelDriver
from kdoctor.model import Severity, Status
from kdoctor_checks.driver.device_nodes import device_nodes


def judged(*facts: FactGroup) -> Result:
    return compute_check(device_nodes, kernel(2), gpus(2), *facts)


def test_nodes_that_can_be_opened_pass() -> None:
    result = judged()
    assert (result.status, result.severity) == (Status.PASS, Severity.ERROR)
    assert [item.observed for item in result.evidence] == [
        "can be opened",
        "/dev/nvidia0 can be opened",
        "/dev/nvidia1 can be opened",
    ]


def test_a_node_that_a_control_group_forbids_fails() -> None:
    result = judged(gpus(2, node_errors={"/dev/nvidia1": "EPERM", "/dev/nvidia-caps-imex-channels": "EPERM"}))
    assert [item.finding.observed for item in result.findings] == ["/dev/nvidia1 cannot be opened: EPERM"]
    assert [item.subject for item in result.evidence] == ["/dev/nvidiactl", "GPU 0 (0000:10:00.0)"]


def test_minor_numbers_in_reverse_order_name_the_right_gpu() -> None:
    """Recorded: two L4 whose GPU 0 has the minor number 1."""
    reverse = gpus(2, gpu(0, minor_number=1), gpu(1, minor_number=0))
    only_zero = kernel(2, nodes=(node("/dev/nvidia0"), node("/dev/nvidiactl")))
    result = judged(reverse, only_zero)
    assert [(item.finding.subject, item.finding.observed) for item in result.findings] == [
        ("GPU 0 (0000:10:00.0)", "/dev/nvidia1 is not there")
    ]


def test_without_the_control_node_nothing_works() -> None:
    result = judged(kernel(2, nodes=(node("/dev/nvidia0"), node("/dev/nvidia1"))))
    assert [item.finding.subject for item in result.findings] == ["/dev/nvidiactl"]


def test_where_the_module_is_not_seen_there_is_no_subject() -> None:
    assert judged(kernel(0, loaded=False, nodes=())).status is Status.SKIP


@pytest.mark.parametrize(
    "group", [gpus(2, node_errors=None), kernel(2, nodes=None), gpus(2, gpu(0), gpu(1, minor_number=None))]
)
def test_what_was_not_read_is_unknown(group: FactGroup) -> None:
    assert judged(group).status is Status.UNKNOWN


def test_a_lost_gpu_needs_no_node() -> None:
    assert judged(gpus(2, gpu(0), lost_gpu(1))).status is Status.PASS


@pytest.mark.parametrize("group", [Gpus, KernelDriver])
def test_missing_evidence_is_unknown(group: type[FactGroup]) -> None:
    assert compute_check(device_nodes, kernel(2), gpus(2), missing={group: "hung"}).status is Status.UNKNOWN
