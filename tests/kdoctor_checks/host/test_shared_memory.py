from __future__ import annotations

import re
from typing import Any

import pytest

from helpers.facts import GIB, MIB, host
from kdoctor.facts import Host
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.host.shared_memory import shared_memory


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"shm_total_bytes": GIB, "shm_free_bytes": GIB}, Status.PASS),
        ({"shm_total_bytes": GIB - 1, "shm_free_bytes": GIB - 1}, Status.FAIL),
        ({"shm_total_bytes": 64 * MIB, "shm_free_bytes": 64 * MIB}, Status.FAIL),  # Docker's default
        ({"shm_free_bytes": 256 * MIB}, Status.PASS),
        ({"shm_free_bytes": 256 * MIB - 1}, Status.FAIL),
        ({"shm_total_bytes": None}, Status.UNKNOWN),
        ({"shm_free_bytes": None}, Status.UNKNOWN),
        ({"os": "Darwin"}, Status.UNKNOWN),
    ],
)
def test_total_and_free_size_are_judged(change: dict[str, Any], status: Status) -> None:
    result = compute_check(shared_memory, host(**change))
    assert (result.status, result.severity) == (status, Severity.WARNING)


def test_parameters_set_the_limits() -> None:
    small = host(shm_total_bytes=2 * GIB, shm_free_bytes=100 * MIB)
    assert compute_check(shared_memory, small, least_gib=2.0, least_free_mib=100).status is Status.PASS
    assert compute_check(shared_memory, small, least_gib=4.0, least_free_mib=100).status is Status.FAIL


def test_container_gets_a_docker_option_and_host_a_mount_command() -> None:
    small: dict[str, Any] = {"shm_total_bytes": 64 * MIB, "shm_free_bytes": 64 * MIB}
    finding = compute_check(shared_memory, host(container="docker", **small)).findings[0].finding
    assert re.findall(r"\d+ [MG]iB", finding.observed) == ["64 MiB", "64 MiB"]
    assert re.findall(r"\d+ [MG]iB", finding.expected) == ["1 GiB", "256 MiB"]
    assert "--shm-size=1g" in finding.remedy.commands[0]
    finding = compute_check(shared_memory, host(**small)).findings[0].finding
    assert finding.rollback.commands == ("sudo mount -o remount,size=65536k /dev/shm",)


def test_unread_host_is_unknown() -> None:
    assert compute_check(shared_memory, missing={Host: "hung"}).status is Status.UNKNOWN
