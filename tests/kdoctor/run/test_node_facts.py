from dataclasses import replace

from helpers.kdoctor_fleet.rdma import device, network
from kdoctor.run.node_facts import shared_facts
from kdoctor.testing import fact_table
from kdoctor_fleet.facts import JobHosts, NetworkInterface


def test_network_has_ports_firmware_and_mtu_of_real_interfaces() -> None:
    interfaces = (
        NetworkInterface(name="eth0", mtu=9000, up=True),
        NetworkInterface(name="ib1", mtu=4092, up=False),
        NetworkInterface(name="veth12ab", mtu=1500, up=True),
    )
    found = shared_facts(fact_table(replace(network(device()), interfaces=interfaces)))["network"]
    assert {name: value for name, value in found.items() if name.endswith(".mtu")} == {"eth0.mtu": "9000"}
    (port,) = (name for name in found if name.endswith("gbit-per-second"))
    assert port.startswith("mlx5_0/1.")
    assert any(name.endswith(".firmware") for name in found)


def test_clock_is_there_where_a_time_service_reported() -> None:
    hosts = JobHosts(clock_source="chronyc", clock_synchronized=True, clock_offset_s=-0.25)
    assert shared_facts(fact_table(hosts))["clock"] == {"synchronized": "yes", "offset-seconds": "-0.250000"}
    assert "clock" not in shared_facts(fact_table(JobHosts()))


def test_groups_that_were_not_collected_are_absent() -> None:
    assert set(shared_facts({})) == set()
