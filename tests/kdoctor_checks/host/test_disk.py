from __future__ import annotations

import pytest

from helpers.facts import GIB, host
from kdoctor.facts import Disk, Host
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.host.disk import disk


def machine(working: int, temporary: int = 50 * GIB) -> Host:
    return host(
        disks=(
            Disk(folder="working folder", total_bytes=1000 * GIB, free_bytes=working),
            Disk(folder="temporary folder", total_bytes=100 * GIB, free_bytes=temporary),
        )
    )


@pytest.mark.parametrize(("free", "status"), [(2 * GIB, Status.PASS), (2 * GIB - 1, Status.FAIL), (0, Status.FAIL)])
def test_little_free_space_warns_with_the_folder(free: int, status: Status) -> None:
    result = compute_check(disk, machine(free))
    assert (result.status, result.severity) == (status, Severity.WARNING)
    assert [item.finding.subject for item in result.findings] == ["working folder"] * len(result.findings)
    assert "temporary folder" in [item.subject for item in result.evidence]


def test_each_folder_is_judged() -> None:
    assert [item.finding.subject for item in compute_check(disk, machine(0, 0)).findings] == [
        "working folder",
        "temporary folder",
    ]


def test_checklist_sets_the_required_space() -> None:
    assert compute_check(disk, machine(500 * GIB), least_gib=600.0).status is Status.FAIL


def test_unread_file_system_is_unknown() -> None:
    one = host(disks=machine(500 * GIB).disks[1:])
    result = compute_check(disk, one)
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.unjudged] == ["working folder"]
    assert compute_check(disk, host(disks=())).status is Status.UNKNOWN


def test_commands_and_value_are_of_the_folder() -> None:
    working, temporary = compute_check(disk, machine(GIB, GIB)).findings
    assert working.finding.remedy.look[0] == "df -h ."
    assert temporary.finding.remedy.look[0] == 'df -h "${TMPDIR:-/tmp}"'
    briefs = {item.subject: item.brief for item in compute_check(disk, machine(50 * GIB)).evidence}
    assert briefs["working folder"]
    assert not briefs["temporary folder"]
