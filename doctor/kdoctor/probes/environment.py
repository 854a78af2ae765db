"""Reads the environment variables that matter to a training job: an allow-list, without secrets."""

from __future__ import annotations

from collections.abc import Mapping

from kdoctor.facts import Environment
from kdoctor.probes.probe import Collected, Context, Probe
from kdoctor.text.secrets import MASK, mask_variable

PREFIXES = (
    "CUBLAS_", "CUDA_", "CUDNN_", "FI_", "GOMP_", "HOROVOD_", "JAX_", "KERAS_", "KMP_", "MKL_", "MPI_", "NCCL_",
    "NVIDIA_", "OMPI_", "OMP_", "OPENBLAS_", "PMI_", "SLURM_", "TF_", "TCMALLOC_", "UCX_", "XLA_",
)  # fmt: skip
"""Families of variables that TensorFlow, CUDA, the collectives and schedulers read."""

_STRANGERS = ("TF_CLI_", "TF_HTTP_", "TF_LOG", "TF_TOKEN_", "TF_VAR_")
"""Variables of Terraform, which shares TensorFlow's prefix and keeps secrets in them."""

NAMES = frozenset({
    "CONDA_DEFAULT_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "LD_PRELOAD", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT",
    "NVBLAS_CONFIG_FILE", "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONPATH",
    "RANK", "VIRTUAL_ENV", "WORLD_SIZE",
})  # fmt: skip
"""Single variables that change which libraries and packages are found, or who the workers are."""

ALLOW_LIST = (*sorted(NAMES), *(f"{prefix}*" for prefix in PREFIXES))
"""The names and families as patterns, for the facts: what is not among them was not looked for."""


def collect(context: Context) -> Collected:
    """The variables of the allow-list, as the job would get them."""
    return {Environment: Environment(variables=allowed(context.environ), allow_list=ALLOW_LIST)}


def allowed(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of the allow-list by name, in order, with secrets masked."""
    return {
        name: MASK if name.startswith(_STRANGERS) else mask_variable(name, _printable(value))
        for name, value in sorted(environ.items())
        if name in NAMES or name.startswith(PREFIXES)
    }


def _printable(value: str) -> str:
    """The value with bytes that are no UTF-8 shown as question marks, so that every report can be written."""
    return value.encode("utf-8", "replace").decode("utf-8")


PROBE = Probe(name="environment", provides=(Environment,), collect=collect, deadline_s=5)
