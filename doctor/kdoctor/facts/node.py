"""Which node of a job this is, as the program that started it says."""

from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup
from kdoctor.records import record

Launcher = Literal["slurm", "kubernetes", "open-mpi", "mpich", "torchrun"]
"""Who started this process: srun or sbatch; a pod; mpirun of Open MPI; mpiexec of MPICH, Intel MPI and their relatives;
anything else that sets ``RANK`` and ``WORLD_SIZE``, such as torchrun and Kubeflow's operators."""


@record
class Node(FactGroup):
    """The name of this node, and its place in a job over several nodes."""

    group: ClassVar[str] = "node"

    name: str
    """As the scheduler names it, else the name of the host."""
    named_by: str
    """The variable that has the name, or ``host name``."""
    launcher: Launcher | None = None
    """None if no variable of a launcher is set."""
    job: str | None = None
    """The scheduler's id of the job."""
    rank: int | None = None
    """Number of this process within the job, from 0."""
    ranks: int | None = None
    """How many processes the job has."""
    tf_config: str | None = None
    """TF_CONFIG with secrets masked; None if it is not set."""
