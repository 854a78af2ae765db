"""Facts of the network and of a fleet, for the machines of the tests."""

from helpers.facts.base import SITE
from helpers.facts.packages import environment
from helpers.kdoctor_fleet.rdma import device, network, two_hosts
from kdoctor_fleet.facts import JobHosts, Network, NetworkInterface
from kdoctor_fleet.testing import healthy_fleet


def no_rdma() -> Network:
    """A machine with one Ethernet interface."""
    return Network(
        interfaces=(NetworkInterface(name="eth0", mtu=1500, up=True), NetworkInterface(name="lo", mtu=65536))
    )


PLAIN = (no_rdma(), JobHosts())
"""A machine that trains without others."""
NETWORK = (
    network(*(device(index) for index in range(8))),
    two_hosts(),
    environment(
        LD_LIBRARY_PATH=f"{SITE}/nvidia/cusolver/lib", NCCL_IB_HCA="mlx5", NCCL_SOCKET_IFNAME="eth", TF_CONFIG="{}"
    ),
)
"""The job of two machines, with an RDMA device next to each GPU."""
WHOLE = (*NETWORK, healthy_fleet())
"""A machine on which every check of this extension has a subject."""
