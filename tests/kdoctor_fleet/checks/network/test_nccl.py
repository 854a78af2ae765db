"""The checks of the devices and interfaces that NCCL's variables name."""

from helpers.cases import cases
from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import device, network, port
from helpers.saying import briefs, said
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network._rdma import Listed, parse_list
from kdoctor_fleet.checks.network.nccl_devices import nccl_devices
from kdoctor_fleet.checks.network.nccl_interfaces import nccl_interfaces
from kdoctor_fleet.facts import NetworkInterface

MACHINE = network(device(0), device(1, port(), port(number=2)), device(10))
INTERFACES = {"bond0": True, "eth0": True, "eth1": False, "lo": None}


@cases(
    (None, None),
    (" ", None),
    ("^", None),
    ("mlx5_0, mlx5_1:2", Listed(exclude=False, exact=False, entries=("mlx5_0", "mlx5_1:2"))),
    ("=mlx5_0", Listed(exclude=False, exact=True, entries=("mlx5_0",))),
    ("^=mlx5_0", Listed(exclude=True, exact=True, entries=("mlx5_0",))),
)
def test_list_is_read_as_nccl_does(value: str | None, parsed: Listed | None) -> None:
    """From NCCL's documentation of NCCL_IB_HCA: ``^`` excludes, ``=`` compares whole names."""
    assert parse_list(value) == parsed


@cases(("mlx5_0", 2, True), ("mlx5_0:1", 1, True), ("mlx5_0:1", 2, False), ("mlx5", 1, False))
def test_entry_names_a_device_or_one_of_its_ports(entry: str, number: int, *, named: bool) -> None:
    assert Listed(exclude=False, exact=True, entries=(entry,)).names(entry, "mlx5_0", number) is named
    assert Listed(exclude=True, exact=True, entries=(entry,)).selects("mlx5_0", number) is not named


@cases(
    ("mlx5", "selects 4 ports of 4"),
    ("mlx5_1", "selects 3 ports of 4"),
    ("=mlx5_1:2,mlx5_0:1", "selects 2 ports of 4"),
    ("^mlx5_10", "selects 3 ports of 4"),
    ("^=mlx5_7", "selects 4 ports of 4"),
    ("=mlx5_10", "selects 1 port of 4"),
    ("=mlx5_0,=mlx5_7", "=mlx5_7 does not exist"),
    ("mlx5_0,mlx5_7", "mlx5_7 does not exist"),
    ("=mlx5", "mlx5 does not exist"),
    ("=mlx5_0:2", "mlx5_0:2 does not exist"),
    ("^mlx5", "it leaves no port"),
    ("^mlx5,ibp", "it leaves no port"),
)
def test_devices_must_exist(value: str, stated: str) -> None:
    result = compute_check(nccl_devices, environment(NCCL_IB_HCA=value), MACHINE)
    good = "selects" in stated
    assert result.status is (Status.PASS if good else Status.FAIL)
    text = said(result)["NCCL_IB_HCA"]
    assert text.startswith(f"{value!r}{'' if good else ':'} {stated}")
    assert (" left" in text) == (not good)
    for judged in result.findings:
        assert judged.finding.remedy.commands == ("unset NCCL_IB_HCA",)


def test_finding_about_a_list_names_what_exists() -> None:
    result = compute_check(nccl_devices, environment(NCCL_IB_HCA="=mlx5_0,mlx5_7"), MACHINE)
    assert said(result)["NCCL_IB_HCA"].endswith("1 port left")
    assert "mlx5_10" in said(result)["NCCL_IB_HCA"]
    assert result.findings[0].finding.rollback.commands == ("export NCCL_IB_HCA==mlx5_0,mlx5_7",)
    bare = compute_check(nccl_devices, environment(NCCL_IB_HCA="mlx5_0"), network())
    assert "no RDMA device" in said(bare)["NCCL_IB_HCA"]
    assert briefs(bare) == ["names RDMA devices that do not exist"]
    assert briefs(compute_check(nccl_devices, environment(NCCL_IB_HCA="^mlx5"), MACHINE)) == ["leaves no RDMA port"]


def test_missing_facts_are_unknown_only_if_devices_are_named() -> None:
    assert compute_check(nccl_devices, environment(NCCL_IB_HCA=""), MACHINE).status is Status.SKIP
    assert compute_check(nccl_devices, environment(), network()).status is Status.SKIP
    assert compute_check(nccl_devices, environment()).status is Status.SKIP
    assert compute_check(nccl_devices, environment(NCCL_IB_HCA="mlx5_0")).status is Status.UNKNOWN


@cases(
    ("eth", ""),
    ("=eth0", ""),
    ("eth1,bond", ""),
    ("^lo,docker", ""),
    ("lo", ""),
    ("=eth", "names no existing interface"),
    ("ens1f0", "names no existing interface"),
    ("eth1", "names no interface that is up"),
    ("^bond,eth,lo", "names no existing interface"),
)
def test_an_interface_must_be_left(value: str, brief: str) -> None:
    machine = network(interfaces=tuple(NetworkInterface(name=name, up=up) for name, up in INTERFACES.items()))
    result = compute_check(nccl_interfaces, environment(NCCL_SOCKET_IFNAME=value), machine)
    assert briefs(result) == [brief]
    for judged in result.findings:
        assert "existing: bond0, eth0, eth1" in judged.finding.observed
        assert ("eth1 is down" in judged.finding.observed) == (value == "eth1")
        assert judged.finding.rollback.commands[0].startswith("export NCCL_SOCKET_IFNAME=")


def test_unset_variable_is_skipped_and_missing_interfaces_are_unknown() -> None:
    assert compute_check(nccl_interfaces, environment(), network()).status is Status.SKIP
    named = environment(NCCL_SOCKET_IFNAME="eth0")
    assert compute_check(nccl_interfaces, named).status is Status.UNKNOWN
    assert compute_check(nccl_interfaces, named, network(interfaces=None)).status is Status.UNKNOWN
