"""How fast JAX multiplies matrices and copies memory on each device (see ``training.compute``)."""

from __future__ import annotations

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compute import Work, measure_each, numbers, show_only
from kdoctor_target.training.jax import devices


def each_device(case: Case) -> None:
    """Measure every device."""
    measure_each(case, _survey, _prepare)


def _survey(case: Case) -> None:
    case.note(devices=devices(case))


def _prepare(case: Case, index: int) -> Work:
    if case.devices_kind == "gpu":
        show_only(index)
    import jax

    device = jax.devices()[0 if case.devices_kind == "gpu" else index]
    made = {name: jax.device_put(array, device) for name, array in numbers(case.devices_kind).items()}
    product, copy = jax.jit(lambda one: one @ one), jax.jit(lambda one: one + 1)
    return Work(
        product=lambda: product(made["matrix"]),
        copy=lambda: copy(made["memory"]),
        wait=lambda result: result.block_until_ready(),
    )
