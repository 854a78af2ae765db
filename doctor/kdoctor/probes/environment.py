"""Reads the environment variables on an allow-list, with secrets masked."""

from collections.abc import Mapping

from kdoctor.facts import Environment, Facts
from kdoctor.probes.probe import Context, Probe
from kdoctor.text.secrets import MASK, mask_variable

PREFIXES = (
    "CUBLAS_", "CUDA_", "CUDNN_", "FI_", "GOMP_", "HOROVOD_", "JAX_", "KERAS_", "KMP_", "MKL_", "MPI_", "NCCL_",
    "NVIDIA_", "OMPI_", "OMP_", "OPENBLAS_", "PMI_", "SLURM_", "TF_", "TCMALLOC_", "UCX_", "XLA_",
)  # fmt: skip
"""Prefixes of variables that TensorFlow, CUDA, collectives and schedulers read."""

_TERRAFORM = ("TF_CLI_", "TF_HTTP_", "TF_LOG", "TF_TOKEN_", "TF_VAR_")
"""Terraform's variables, which share TensorFlow's prefix and may contain secrets."""

NAMES = frozenset({
    "CONDA_DEFAULT_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "LD_PRELOAD", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT",
    "NVBLAS_CONFIG_FILE", "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONPATH",
    "PYTHONSAFEPATH", "RANK", "VIRTUAL_ENV", "WORLD_SIZE",
})  # fmt: skip
"""Other variables that determine which libraries and packages are found, or the workers' roles."""

ALLOW_LIST = (*sorted(NAMES), *(f"{prefix}*" for prefix in PREFIXES))
"""The names and prefixes as patterns, for the facts."""


def collect(context: Context) -> Facts:
    """The job's variables on the allow-list."""
    return {Environment: Environment(variables=allowed(context.environ), allow_list=ALLOW_LIST)}


def allowed(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables on the allow-list by name, in order, with secrets masked."""
    return {
        name: MASK if name.startswith(_TERRAFORM) else mask_variable(name, printable(value))
        for name, value in sorted(environ.items())
        if is_recorded(name)
    }


def is_recorded(name: str) -> bool:
    """Whether a variable is on the allow-list."""
    return name in NAMES or name.startswith(PREFIXES)


def printable(value: str) -> str:
    """The value with bytes that are not UTF-8 replaced by question marks, so that it can be written to a report."""
    return value.encode("utf-8", "replace").decode("utf-8")


PROBE = Probe(name="environment", provides=(Environment,), collect=collect, deadline_s=5)
