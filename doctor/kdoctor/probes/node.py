"""Reads which node of a job this is, from the variables of the program that started it.

Sources: https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES;
https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html;
https://github.com/pmodels/mpich/blob/main/doc/wiki/design/PMI_v2_Wire_Protocol.md (``PMI_RANK``, ``PMI_SIZE``);
https://kubernetes.io/docs/tasks/job/indexed-parallel-processing-static/;
https://pytorch.org/docs/stable/elastic/run.html#environment-variables.
"""

import platform
from collections.abc import Mapping
from typing import NamedTuple

from kdoctor.facts import Facts, Launcher, Node
from kdoctor.probes.environment import printable
from kdoctor.probes.probe import Context, Probe
from kdoctor.text.secrets import mask_variable

NAMES = ("KDOCTOR_NODE", "SLURMD_NODENAME", "NODE_NAME")
"""Variables with the name of the node, the user's own first. ``NODE_NAME`` is what manifests of Kubernetes call
``spec.nodeName`` by convention."""


class _Variables(NamedTuple):
    launcher: Launcher
    rank: str
    ranks: str
    job: str


_LAUNCHERS = (
    _Variables("open-mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_JOB_ID"),
    _Variables("slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID"),
    _Variables("mpich", "PMI_RANK", "PMI_SIZE", ""),
    _Variables("kubernetes", "JOB_COMPLETION_INDEX", "", "JOB_NAME"),
    _Variables("torchrun", "RANK", "WORLD_SIZE", ""),
)
"""Those that know most about the processes come first: mpirun starts daemons by srun, which sets variables of PMI."""


def collect(context: Context) -> Facts:
    """The node's name, and the rank of this process."""
    environ = context.environ
    named_by = next((name for name in NAMES if environ.get(name)), None)
    found = next((item for item in _LAUNCHERS if _number(environ, item.rank) is not None), None)
    config = environ.get("TF_CONFIG")
    node = Node(
        name=printable(environ[named_by] if named_by else platform.node()),
        named_by=named_by or "host name",
        launcher=found.launcher if found else None,
        job=printable(environ[found.job]) if found and environ.get(found.job) else None,
        rank=_number(environ, found.rank) if found else None,
        ranks=_number(environ, found.ranks) if found else None,
        tf_config=mask_variable("TF_CONFIG", printable(config)) if config else None,
    )
    return {Node: node}


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() else None


PROBE = Probe(name="node", provides=(Node,), collect=collect, deadline_s=5)
