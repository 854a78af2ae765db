from __future__ import annotations

import pytest

from helpers.facts import gpu, gpus, kernel, lost_gpu, node
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.driver.device_nodes import device_nodes


def judged(*facts: FactGroup) -> Result:
    return compute_check(device_nodes, kernel(2), gpus(2), *facts)


def test_open_nodes_pass() -> None:
    result = judged()
    assert (result.status, result.severity) == (Status.PASS, Severity.ERROR)
    assert [item.subject for item in result.evidence] == [
        "/dev/nvidiactl",
        "GPU 0 (0000:10:00.0)",
        "GPU 1 (0000:20:00.0)",
    ]


def test_node_that_cannot_be_opened_fails() -> None:
    result = judged(gpus(2, node_errors={"/dev/nvidia1": "EPERM", "/dev/nvidia-caps-imex-channels": "EPERM"}))
    assert [item.finding.subject for item in result.findings] == ["/dev/nvidia1"]
    assert "EPERM" in result.findings[0].finding.observed
    assert [item.subject for item in result.evidence] == ["/dev/nvidiactl", "GPU 0 (0000:10:00.0)"]


def test_minor_numbers_in_reverse_order_name_the_correct_gpu() -> None:
    """Recorded: two L4 whose GPU 0 has the minor number 1."""
    reverse = gpus(2, gpu(0, minor_number=1), gpu(1, minor_number=0))
    only_zero = kernel(2, nodes=(node("/dev/nvidia0"), node("/dev/nvidiactl")))
    result = judged(reverse, only_zero)
    (item,) = result.findings
    assert item.finding.subject == "GPU 0 (0000:10:00.0)"
    assert "/dev/nvidia1" in item.finding.observed


def test_missing_control_node_fails() -> None:
    result = judged(kernel(2, nodes=(node("/dev/nvidia0"), node("/dev/nvidia1"))))
    assert [item.finding.subject for item in result.findings] == ["/dev/nvidiactl"]


def test_hidden_module_is_skipped() -> None:
    assert judged(kernel(0, loaded=False, nodes=())).status is Status.SKIP


@pytest.mark.parametrize(
    "group", [gpus(2, node_errors=None), kernel(2, nodes=None), gpus(2, gpu(0), gpu(1, minor_number=None))]
)
def test_unread_nodes_are_unknown(group: FactGroup) -> None:
    assert judged(group).status is Status.UNKNOWN


def test_lost_gpu_is_unknown_and_explains_its_node() -> None:
    assert judged(gpus(2, gpu(0), lost_gpu(1))).status is Status.UNKNOWN
    broken = judged(gpus(2, gpu(0), lost_gpu(1), node_errors={"/dev/nvidia1": "EIO"}))
    assert [item.finding.explained_by for item in broken.findings] == [("gpu.responding",)]
    in_use = judged(gpus(2, node_errors={"/dev/nvidia1": "EIO"}))
    assert [item.finding.explained_by for item in in_use.findings] == [()]
