"""The fixes for nodes that differ, and the limits of the clocks."""

from typing import Any

import pytest

from helpers.cases import cases
from helpers.kdoctor_fleet.fleets import fleet
from helpers.saying import briefs, said
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.cluster._compare import ABSENT, Difference
from kdoctor_fleet.checks.cluster._fixes import install_driver, set_variables
from kdoctor_fleet.checks.cluster.clock import clock


def differs(name: str, value: str, others: str) -> Difference:
    return Difference(name=name, label=name, value=value, others=others)


@pytest.mark.parametrize("others", ["<script>", ABSENT, "580; reboot"])
def test_driver_that_is_no_version_is_not_installed(others: str) -> None:
    remedy, _ = install_driver("node0002", [differs("version", "570.1", others)])
    assert remedy.commands == ()


def test_driver_of_the_other_nodes_is_installed() -> None:
    differences = [differs("flavour", "open", "proprietary"), differs("version", "570.1", "580.105.08")]
    remedy, _ = install_driver("node0002", differences)
    assert remedy.commands
    assert any("580" in command for command in remedy.commands)
    assert not any("570" in command for command in remedy.commands)
    assert "node0002" in remedy.summary


@cases(
    ("1", "0", ("export A=0",), ("export A=1",)),
    (ABSENT, "0", ("export A=0",), ("unset A",)),
    ("1", ABSENT, ("unset A",), ("export A=1",)),
    ("1", "withheld, sha 12", (), ("export A=1",)),
    ("withheld, sha 12", "0", ("export A=0",), ()),
)
def test_variables_are_set_and_restored(
    value: str, others: str, commands: tuple[str, ...], back: tuple[str, ...]
) -> None:
    remedy, rollback = set_variables("node0002", [differs("A", value, others), differs("no name", "1", "2")])
    assert remedy.commands == commands
    assert rollback.commands == back
    assert rollback.kind == ("commands" if back else "irreversible")


def service(**facts: str) -> dict[str, Any]:
    return {"sections": {"clock": {name.replace("_", "-"): value for name, value in facts.items()}}}


@cases(("1.0", Status.PASS), ("-1.0", Status.PASS), ("1.1", Status.FAIL), ("soon", Status.PASS))
def test_offset_may_be_as_large_as_the_limit(offset: str, status: Status) -> None:
    assert compute_check(clock, fleet(1, node0001=service(synchronized="yes", offset_seconds=offset))).status is status


def test_service_without_an_offset_is_in_time() -> None:
    result = compute_check(clock, fleet(1, node0001=service(synchronized="yes")), most_seconds=0.5)
    assert said(result) == {"node0001": "synchronized within 0.5 s"}


@cases(
    (service(synchronized="yes", offset_seconds="5"), "its clock is off"),
    (service(synchronized="no"), "its clock is not synchronized"),
    ({"started_at": "2026-01-01T01:10:00Z"}, "its clock is ahead"),
    ({"started_at": "2026-01-01T00:00:00Z", "asked_at": "2026-01-01T01:00:01Z"}, "its clock is behind"),
)
def test_wrong_clock_has_a_short_form(change: dict[str, Any], brief: str) -> None:
    assert briefs(compute_check(clock, fleet(1, node0001=change))) == [brief]


@pytest.mark.parametrize(("started", "status"), [("00:11:00", Status.PASS), ("00:11:01", Status.FAIL)])
def test_report_may_start_a_minute_after_it_was_read(started: str, status: Status) -> None:
    """The fleet was merged at 00:10:00."""
    result = compute_check(clock, fleet(1, node0001={"started_at": f"2026-01-01T{started}+00:00"}))
    assert result.status is status


@pytest.mark.parametrize(("asked", "status"), [("00:01:00", Status.PASS), ("00:01:01", Status.FAIL)])
def test_report_may_start_a_minute_before_it_was_asked_for(asked: str, status: Status) -> None:
    change = {"started_at": "2026-01-01T00:00:00Z", "asked_at": f"2026-01-01T{asked}Z"}
    assert compute_check(clock, fleet(1, node0001=change)).status is status
