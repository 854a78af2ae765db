"""How to keep nodes out of a job, in the words of the engine that starts it. Commands are printed only. Pure."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from kdoctor.commands.shell import quoted
from kdoctor.records import record

Engine = Literal["slurm", "kubernetes", "hosts"]
ENGINES: tuple[Engine, ...] = ("slurm", "kubernetes", "hosts")
"""Slurm, Kubernetes, and everything that takes a list of hosts (mpirun, Ansible, ssh, Dask)."""

TAINT = "kdoctor/unhealthy"
"""Key of the taint and of the label."""
CONDITION = "KerasJobProblem"
REASON = "kdoctor: "
"""Begins the reason of a drained node, so that a program takes back only what kdoctor drained."""

_LONGEST_REASON = 80


@record
class Exclusion:
    """How to keep nodes out of a job, in the words of one engine. kdoctor runs nothing of it."""

    engine: Engine
    leave_out: tuple[str, ...]
    """Starts the job without the nodes that did not pass."""
    drain: tuple[str, ...]
    """Keeps other jobs off the nodes that have a problem."""


def exclusions(
    failing: Sequence[str], broken: Sequence[str], reason: str, lists: str, fold: Callable[[Iterable[str]], str]
) -> tuple[Exclusion, ...]:
    """The commands of every engine; none if all nodes passed.

    Args:
        failing: the nodes not to use.
        broken: those of them with a problem of the node.
        reason: what is wrong with them, in a few words.
        lists: the command that writes the other nodes to ``passing.txt``; empty if there are none.
        fold: writes a set of nodes in short.
    """
    if not failing:
        return ()
    why = f"{REASON}{' '.join(reason.split())}"[:_LONGEST_REASON].rstrip()
    drain = ("sudo", "scontrol", "update", f"nodename={fold(broken)}", "state=drain", f"reason={why}") if broken else ()
    return (
        Exclusion(
            engine="slurm",
            leave_out=(quoted("sbatch", f"--exclude={fold(failing)}", "job.sh"),),
            drain=(quoted(*drain),) if drain else (),
        ),
        Exclusion(
            engine="kubernetes", leave_out=(_affinity(failing),), drain=_kubernetes_drain(broken, why) if broken else ()
        ),
        Exclusion(engine="hosts", leave_out=(lists,) if lists else (), drain=()),
    )


def _kubernetes_drain(broken: Sequence[str], why: str) -> tuple[str, ...]:
    """A taint keeps pods off, a label selects the nodes, and a condition is what monitoring reads."""
    condition = {"type": CONDITION, "status": "True", "reason": "ChecksFailed", "message": why}
    patch = json.dumps({"status": {"conditions": [condition]}})
    return (
        quoted("kubectl", "taint", "nodes", *broken, f"{TAINT}=true:NoSchedule"),
        quoted("kubectl", "label", "nodes", *broken, f"{TAINT}=true"),
        quoted("kubectl", "patch", "nodes", *broken, "--subresource=status", "--type=strategic", f"--patch={patch}"),
    )


def _affinity(nodes: Sequence[str]) -> str:
    """The part of a pod's ``spec`` that keeps it off these nodes."""
    return "\n".join((
        "affinity:",
        "  nodeAffinity:",
        "    requiredDuringSchedulingIgnoredDuringExecution:",
        "      nodeSelectorTerms:",
        "      - matchExpressions:",
        "        - key: kubernetes.io/hostname",
        "          operator: NotIn",
        f"          values: [{', '.join(nodes)}]",
    ))  # fmt: skip
