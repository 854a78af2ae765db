from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Action, Outcome, Severity
from kdoctor_fleet.checks.cluster._compare import Comparison, compare
from kdoctor_fleet.checks.cluster._fixes import by_hand
from kdoctor_fleet.facts import Fleet

_NAMES = {"cudnn": "cuDNN", "nccl": "NCCL", "cudart": "CUDA runtime", "cublas": "cuBLAS", "cublasLt": "cuBLASLt"}

_FIX = by_hand(
    "On {nodes}, install the libraries of the other nodes, or use the same image.",
    Action.REINSTALL,
    "ldconfig -p | grep -E 'cudnn|nccl|cudart'",
)


@check("cluster.cuda-libraries", severity=Severity.ERROR, explained_by=("versions.tensorflow-installed",))
def cuda_libraries(fleet: Fleet) -> Iterator[Outcome]:
    """The loader finds the same CUDA, cuDNN and NCCL on all nodes.

    Why: NCCL's processes must be of one version to set up a communicator, and other versions of cuDNN or cuBLAS choose
    other algorithms, so that nodes compute slightly different gradients.
    Remedy: install the same libraries on all nodes, or start them from one image.
    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
        https://docs.nvidia.com/deeplearning/cudnn/backend/latest/reference/support-matrix.html
    """
    yield from compare(
        fleet,
        Comparison(
            section="libraries",
            what="CUDA libraries",
            without=("cuda", "cuda.*", "*.found-by"),
            fix=_FIX,
            label=lambda name: _NAMES.get(name, name),
            explained_by=("cluster.packages", "cluster.frameworks", "cluster.system"),
        ),
    )
