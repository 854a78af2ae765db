"""The programs of ``training.same_bits`` with JAX, on all devices at once."""

from __future__ import annotations

import os

from kdoctor_target.runner.case import Case
from kdoctor_target.training.same_bits import SIZES, compare

_DETERMINISTIC = "--xla_gpu_deterministic_ops=true"


def all_devices(case: Case) -> None:
    """Compare all devices."""
    case.phase("strategy")
    if case.devices_kind == "gpu":  # XLA reads it before it uses the first device; a CPU's operations are deterministic
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_DETERMINISTIC}".strip()
    from kdoctor_target.training.jax import devices

    names = devices(case)
    import jax

    from kdoctor_target.training.same_bits_jax import make_programs, models_of

    case.note(devices=names, replicas=len(names))
    chosen = jax.devices()[: len(names)]
    case.phase("build")
    compare(case, make_programs(chosen, SIZES[case.devices_kind], trains=True), models_of(chosen))
