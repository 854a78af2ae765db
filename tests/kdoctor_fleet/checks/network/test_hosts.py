"""The checks of the hosts in TF_CONFIG, and of this machine's clock."""

from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import two_hosts
from helpers.saying import said
from kdoctor.check import Check
from kdoctor.engine.report import Result
from kdoctor.model import Evidence, Severity, Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.clock import clock
from kdoctor_fleet.checks.network.hosts_reachable import hosts_reachable
from kdoctor_fleet.checks.network.hosts_resolve import hosts_resolve
from kdoctor_fleet.checks.network.hosts_reverse import hosts_reverse
from kdoctor_fleet.checks.network.port_free import port_free
from kdoctor_fleet.facts import JobHosts

OWN, OTHER = "worker 0 (node1:2222)", "worker 1 (node2:2222)"
UNTRIED = "the connection was not tried or did not end"
OF_HOSTS = [clock, hosts_reachable, hosts_resolve, hosts_reverse, port_free]


def hosts(check: Check, own: dict[str, Any] | None = None, other: dict[str, Any] | None = None) -> Result:
    return compute_check(check, two_hosts(own, other), environment())


@pytest.mark.parametrize("check", OF_HOSTS, ids=lambda check: check.id)
def test_job_on_one_machine_is_skipped_and_a_broken_config_fails_once(check: Check) -> None:
    assert compute_check(check, JobHosts(), environment()).status is Status.SKIP
    assert compute_check(check, environment()).status is Status.SKIP
    broken = compute_check(check, JobHosts(malformed="it is not JSON"), environment())
    assert broken.status is (Status.FAIL if check is hosts_resolve else Status.UNKNOWN)  # no strategy can be made
    assert "it is not JSON" in said(broken)["TF_CONFIG"]
    assert compute_check(check, environment(TF_CONFIG="{}")).status is Status.UNKNOWN


@cases(
    (hosts_reachable, {"state": "connected"}, Status.PASS, "a program listens on its port"),
    (hosts_reachable, {"state": "refused"}, Status.PASS, "the host answers, its port is free"),
    (hosts_reachable, {"state": "timed-out", "error": "no answer in 4 s"}, Status.FAIL,
     "cannot be reached (no answer in 4 s)"),
    (hosts_reachable, {"state": "unreachable", "error": None}, Status.FAIL, "cannot be reached (unreachable)"),
    (hosts_reachable, {"state": None, "resolved": False}, Status.UNKNOWN, "it has no address"),
    (hosts_reachable, {"state": None, "resolved": True}, Status.UNKNOWN, UNTRIED),
    (hosts_reachable, {"state": None, "resolved": None}, Status.UNKNOWN, UNTRIED),
    (hosts_resolve, {}, Status.PASS, "has an address"),
    (hosts_resolve, {"resolved": False, "error": "not known"}, Status.FAIL, "has no address (not known)"),
    (hosts_resolve, {"resolved": False}, Status.FAIL, "has no address (no reason given)"),
    (hosts_resolve, {"resolved": None}, Status.UNKNOWN, "the name server did not answer in time"),
    (hosts_reverse, {}, Status.PASS, "its address has a name that leads back to it"),
    (hosts_reverse, {"resolves_back": False}, Status.FAIL,
     "its address has no name, or one that leads to another address"),
    (hosts_reverse, {"resolved": False}, Status.UNKNOWN, "it has no address"),
    (hosts_reverse, {"resolves_back": None}, Status.UNKNOWN, "the name server did not answer"),
    (hosts_reverse, {"resolved": None, "resolves_back": True}, Status.UNKNOWN, "the name server did not answer"),
)  # fmt: skip
def test_other_host_is_judged(check: Check, change: dict[str, Any], status: Status, stated: str) -> None:
    result = hosts(check, other=change)
    assert (result.status, said(result)[OTHER]) == (status, stated)
    assert {item.finding.subject for item in result.findings} <= {OTHER}


@cases(
    ({}, Status.PASS, "port 2222 is free"),
    ({"port_free": False, "error": "Address already in use"}, Status.FAIL,
     "port 2222 cannot be opened (Address already in use)"),
    ({"port_free": False}, Status.FAIL, "port 2222 cannot be opened (no reason given)"),
    ({"port_free": None}, Status.UNKNOWN, "the port was not tried"),
    ({"own": False}, Status.SKIP, None),
)  # fmt: skip
def test_own_port_must_be_free(change: dict[str, Any], status: Status, stated: str | None) -> None:
    result = hosts(port_free, own=change)
    assert (result.status, said(result)) == (status, {OWN: stated} if stated else {})
    for judged in result.findings:
        assert "ss -ltnp 'sport = :2222'" in judged.finding.remedy.look


def test_address_without_port_fails() -> None:
    result = hosts(hosts_resolve, other={"port": None})
    assert [item.finding.subject for item in result.findings] == ["worker 1 (node2)"]


def test_each_other_host_is_one_outcome() -> None:
    outcomes = list(hosts_reachable.function(two_hosts(other={"state": "refused"}), environment()))
    assert [type(outcome) for outcome in outcomes] == [Evidence]
    both = hosts(hosts_reachable, other={"own": True})
    assert (both.status, both.reason) == (Status.SKIP, "TF_CONFIG names no other task")


def test_finding_about_a_host_has_its_address_in_the_command() -> None:
    unreachable = hosts(hosts_reachable, other={"state": "timed-out"}).findings[0].finding
    assert "nc -vz -w 5 node2 2222" in unreachable.remedy.look
    assert unreachable.headline == "does not answer"
    assert hosts(hosts_reachable, other={"state": "unreachable"}).findings[0].finding.headline == "cannot be reached"
    assert "getent ahosts node2" in hosts(hosts_resolve, other={"resolved": False}).findings[0].finding.remedy.look


@cases(
    ({"clock_offset_s": 0.1}, "synchronized (chronyc), 0.1 s from its time servers", Status.PASS),
    ({"clock_offset_s": -0.1}, "synchronized (chronyc), 0.1 s from its time servers", Status.PASS),
    ({"clock_offset_s": 0.101}, "0.101 s from its time servers", Status.FAIL),
    ({"clock_offset_s": -0.5}, "0.5 s from its time servers", Status.FAIL),
    ({"clock_offset_s": None}, "synchronized (chronyc)", Status.PASS),
    ({"clock_synchronized": False}, "not synchronized (chronyc)", Status.FAIL),
    ({"clock_synchronized": None}, "neither chronyc nor timedatectl reports whether it is synchronized",
     Status.UNKNOWN),
)  # fmt: skip
def test_clock_must_be_synchronized(clocks: dict[str, Any], stated: str, status: Status) -> None:
    result = compute_check(clock, two_hosts(**clocks), environment())
    assert (said(result), result.status) == ({"clock": stated}, status)
    assert result.severity is Severity.WARNING
