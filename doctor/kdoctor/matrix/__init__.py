"""The version matrix: which TensorFlow was built for what, which machine runs it, what is known to go wrong.

    matrix = load_matrix(environ=os.environ)             # the shipped one, and KDOCTOR_MATRIX over it
    machine = Machine(driver="535.161.08", gpus=(find_gpu(matrix, "A100"),), python="3.11")
    for verdict in compatible(matrix, machine): ...      # newest first; best(...) is the one to install
    requirements(matrix, "2.19")                         # what it needs; the newest 2.19.x
    matrix.known_bad_for({"tensorflow": "2.21.0", "cudnn": "9.5.1"})   # what an environment is surely in
    matrix.release("2.19.1"), matrix.sonames(release), matrix.oldest_driver("12.5.1"), matrix.ptx_drivers("12.5.1"),
    matrix.keras_behaviour("3.6.0"), code_for(release, "9.0")

Only :func:`load_matrix` and :func:`loads` read files; everything else is pure and knows nothing of this machine.
"""

from kdoctor.matrix.compatibility import best, code_for, compatible, judge
from kdoctor.matrix.document import SCHEMA
from kdoctor.matrix.gpus import GpuNameError, NamedGpu, find_gpu
from kdoctor.matrix.known_bad import overlap
from kdoctor.matrix.load import VARIABLE, MatrixError, load_matrix, loads, shipped_text
from kdoctor.matrix.model import (
    CudaMajor,
    CudaRelease,
    CudnnSupport,
    GpuKind,
    KerasBehaviour,
    KnownBad,
    Libraries,
    Nccl,
    Release,
    VersionMatrix,
    numbers,
    python_minors,
)
from kdoctor.matrix.requirements import Needs, UnknownReleaseError, find_release, requirements
from kdoctor.matrix.verdict import Machine, Outcome, Reason, Rule, Verdict

__all__ = [
    "SCHEMA",
    "VARIABLE",
    "CudaMajor",
    "CudaRelease",
    "CudnnSupport",
    "GpuKind",
    "GpuNameError",
    "KerasBehaviour",
    "KnownBad",
    "Libraries",
    "Machine",
    "MatrixError",
    "NamedGpu",
    "Nccl",
    "Needs",
    "Outcome",
    "Reason",
    "Release",
    "Rule",
    "UnknownReleaseError",
    "Verdict",
    "VersionMatrix",
    "best",
    "code_for",
    "compatible",
    "find_gpu",
    "find_release",
    "judge",
    "load_matrix",
    "loads",
    "numbers",
    "overlap",
    "python_minors",
    "requirements",
    "shipped_text",
]
