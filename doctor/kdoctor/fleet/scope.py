"""Whether a problem is the node's or the job's: what drains a node and what fails a job are two things. Pure."""

from __future__ import annotations

from typing import Literal

Scope = Literal["node", "job"]

_OF_NODES = frozenset({"driver", "gpu", "topology", "network", "host"})
"""Families about the hardware and the system of a node. The others are about what the job brings with it."""
_CLUSTER_OF_NODES = frozenset({
    "cluster.reports", "cluster.driver", "cluster.system", "cluster.gpus", "cluster.topology", "cluster.network",
    "cluster.clock", "cluster.training-speed", "cluster.pairs",
})  # fmt: skip


def scope_of(check: str, *, passed: int, failed: int) -> Scope:
    """Whose problem a failed check is.

    A training that fails on few nodes while most nodes pass the same training is the node's problem, because the code
    is the same. If it fails on most nodes, it is the job's.

    Args:
        check: its id.
        passed: number of nodes on which it passed.
        failed: number of nodes on which it failed.
    """
    family = check.partition(".")[0]
    if family in _OF_NODES or check in _CLUSTER_OF_NODES:
        return "node"
    return "node" if family == "smoke" and passed > failed else "job"
