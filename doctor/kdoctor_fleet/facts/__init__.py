"""Facts about the nodes of a job, and the network between them."""

from kdoctor_fleet.facts.fleet import (
    BadLink,
    BadNode,
    Fleet,
    FleetNode,
    JobConfig,
    NodeResult,
    Nodes,
    PairTests,
    Together,
    UnreadReport,
)
from kdoctor_fleet.facts.network import JobHost, JobHosts, Network, NetworkInterface, RdmaDevice, RdmaPort

__all__ = [
    "BadLink", "BadNode", "Fleet", "FleetNode", "JobConfig", "JobHost", "JobHosts", "Network", "NetworkInterface",
    "NodeResult", "Nodes", "PairTests", "RdmaDevice", "RdmaPort", "Together", "UnreadReport",
]  # fmt: skip
