"""Whether a problem is the node's or the job's: what drains a node and what fails a job are two things. Pure."""

from typing import Literal

Scope = Literal["node", "job"]

_OF_NODES = frozenset({"driver", "gpu", "topology", "network", "host"})
"""Families about the hardware and the system of a node. The others are about what the job brings with it."""
_CLUSTER_OF_NODES = frozenset({
    "cluster.reports", "cluster.driver", "cluster.system", "cluster.gpus", "cluster.topology", "cluster.network",
    "cluster.clock", "cluster.training-speed", "cluster.pairs",
})  # fmt: skip
_OF_NAMES = frozenset({
    "network.hosts-resolve", "network.hosts-reverse", "network.hosts-reachable", "network.port-free",
    "network.nccl-interfaces",
})  # fmt: skip
"""Checks of hosts, ports and interfaces that the job names, in TF_CONFIG and variables of NCCL."""


def scope_of(check: str, *, passed: int, failed: int, alike: bool = True) -> Scope:
    """Whose problem a failed check is.

    A training that fails on few nodes while most nodes pass the same training is the node's problem, because the code
    is the same. If it fails on most nodes, it is the job's. The same is true of the hosts that a job names.

    Args:
        check: its id.
        passed: number of nodes on which it passed.
        failed: number of nodes on which it failed.
        alike: whether all nodes got the same cluster in TF_CONFIG. If not, a host that is not found may be a wrong one.
    """
    if check in _OF_NAMES and not alike:
        return "job"
    family = check.partition(".")[0]
    if family == "smoke" or check in _OF_NAMES:
        return "node" if passed > failed else "job"
    return "node" if family in _OF_NODES or check in _CLUSTER_OF_NODES else "job"
