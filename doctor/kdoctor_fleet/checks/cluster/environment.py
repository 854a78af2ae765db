from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Outcome, Severity
from kdoctor_fleet.checks.cluster._compare import Comparison, compare
from kdoctor_fleet.checks.cluster._fixes import set_variables
from kdoctor_fleet.facts import Fleet

_OF_ONE_NODE = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "TF_CONFIG", "KDOCTOR_*", "PMIX_*", "MPI_*")


@check("cluster.environment", severity=Severity.ERROR)
def environment(fleet: Fleet) -> Iterator[Outcome]:
    """The variables of NCCL, TensorFlow, XLA, Keras and CUDA are the same on all nodes.

    Why: NCCL does not check that its variables agree. NCCL_PROTO or NCCL_ALGO on one node only makes the job hang, and
    XLA_FLAGS or TF_... on one node make it compute something else. Paths are compared as set or not set.
    Remedy: set the variables in the job's script, and let the launcher pass them on (mpirun -x, srun --export).
    Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    yield from compare(
        fleet,
        Comparison(section="environment", what="variables", without=_OF_ONE_NODE, fix=set_variables, absent="not set"),
    )
