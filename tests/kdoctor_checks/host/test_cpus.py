from __future__ import annotations

import re
from typing import Any

import pytest

from helpers.facts import gpu, gpus, host, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.host.cpus import cpus


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"cpu_affinity": tuple(range(16))}, Status.PASS),
        ({"cpu_affinity": tuple(range(15))}, Status.FAIL),
        ({"cpu_limit": 16.0}, Status.PASS),
        ({"cpu_limit": 15.9}, Status.FAIL),
        ({"cpu_affinity": None}, Status.UNKNOWN),
        ({"cpu_limit": None}, Status.UNKNOWN),
    ],
)
def test_eight_gpus_need_sixteen_cpus(change: dict[str, Any], status: Status) -> None:
    result = compute_check(cpus, host(**change), gpus(8))
    assert (result.status, result.severity) == (status, Severity.WARNING)


def test_checklist_sets_the_number_and_lost_gpus_need_none() -> None:
    assert compute_check(cpus, host(cpu_limit=16.0), gpus(8), least_per_gpu=4.0).status is Status.FAIL
    two = gpus(2, gpu(0), lost_gpu(1))
    observed = compute_check(cpus, host(cpu_limit=2.0), two).evidence[0].observed
    assert re.findall(r"\d+", observed) == ["2", "1", "224", "2"]
    assert compute_check(cpus, host(), gpus(1, lost_gpu(0))).status is Status.UNKNOWN
