"""The programs of ``training.same_bits`` with JAX, and a training with Keras on JAX."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, List, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from kdoctor_target.training.regression import LEARNING_RATE, dense_model, make_batches
from kdoctor_target.training.same_bits import PRODUCTS, STEPS, Programs, Sizes, inputs

_FLOAT8_CAPABILITY = 8.9
"""The first compute capability with products of float8."""


def models_of(devices: Sequence[Any]) -> List[str]:
    """The model of each device; parts of a CPU are equal."""
    return [str(device.device_kind) for device in devices]


def make_programs(devices: Sequence[Any], sizes: Sizes, *, trains: bool) -> Programs:
    """The programs on these devices; with ``trains``, those that need deterministic operations, too."""
    programs = _programs(sizes, trains=trains)
    for name in _left_out(devices[0]):
        programs.pop(name, None)
    given = [{name: jax.device_put(array, device) for name, array in inputs(sizes).items()} for device in devices]

    def run(name: str, place: int) -> Any:
        return programs[name](given[place])

    return Programs(names=list(programs), run=run, differs=_differs)


def _left_out(device: Any) -> List[str]:
    """Programs of types that the device does not have."""
    if device.platform != "gpu":
        return ["product TensorFloat-32"]
    return ["product float8"] if float(device.compute_capability) < _FLOAT8_CAPABILITY else []


def _programs(sizes: Sizes, *, trains: bool) -> Dict[str, Callable[[Dict[str, Any]], Any]]:
    programs: Dict[str, Callable[[Dict[str, Any]], Any]] = {
        f"product {kind}": partial(_product, kind, times * sizes.products) for kind, times in PRODUCTS.items()
    }
    programs["attention"] = _attention
    programs["reductions"] = _reductions
    if trains:
        tensor_float = partial(_product, "float32", PRODUCTS["float16"] * sizes.products, precision="tensorfloat32")
        programs["product TensorFloat-32"] = tensor_float
        programs["convolution"] = _convolution
        programs["convolution gradients"] = _gradients
        programs["training"] = _training(sizes.units)
    return {name: jax.jit(program) for name, program in programs.items()}


def _product(kind: str, products: int, given: Dict[str, Any], *, precision: str = "highest") -> Any:
    dtype = jnp.float8_e4m3fn if kind == "float8" else jnp.dtype(kind)
    factor = given["matrix"].astype(dtype)
    result = factor
    for _ in range(products):
        result = jnp.matmul(result, factor, precision=precision, preferred_element_type=_accumulated(dtype))
        result = result.astype(dtype)
    return result


def _accumulated(dtype: Any) -> Any:
    return jnp.float32 if jnp.dtype(dtype).itemsize == 1 else dtype


def _attention(given: Dict[str, Any]) -> Any:
    query, key, value = (given[name].astype(jnp.float16) for name in ("query", "key", "value"))
    scores = jnp.einsum("hik,hjk->hij", query, key) / jnp.sqrt(jnp.float16(query.shape[-1]))
    return jnp.einsum("hij,hjk->hik", jax.nn.softmax(scores), value)


def _reductions(given: Dict[str, Any]) -> Any:
    """Sums, moments and a softmax over rows and columns, of numbers that pass through elementary functions."""
    matrix = given["matrix"]
    numbers = jnp.tanh(matrix) + jnp.exp(-(matrix**2)) + jax.lax.rsqrt(1 + jnp.abs(matrix))
    rows = numbers.sum(1) + numbers.var(1) + numbers.max(1)
    columns = numbers.mean(0) + jax.nn.logsumexp(numbers, 0)
    return jnp.concatenate([rows, columns, jax.nn.softmax(numbers).ravel()])


def _convolution(given: Dict[str, Any]) -> Any:
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(given["images"], given["filters"], (1, 1), "SAME", dimension_numbers=layout)


def _gradients(given: Dict[str, Any]) -> Any:
    wanted = {name: given[name] for name in ("images", "filters")}
    return _flat(jax.tree.leaves(jax.grad(lambda one: jnp.sum(_convolution(one) ** 2))(wanted)))


def _training(units: int) -> Callable[[Dict[str, Any]], Any]:
    """A few steps of gradient descent with a Keras model, always from the same weights."""
    import keras

    given, wanted, *_ = make_batches(1)
    model = dense_model(keras, units=units, normalised=True)
    # NumPy arrays have no device: each device gets its own constants.
    at_first = [np.asarray(one.value) for one in model.trainable_variables]
    others = [np.asarray(one.value) for one in model.non_trainable_variables]

    def loss(weights: Any, states: Any) -> Any:
        predicted, states = model.stateless_call(weights, states, given, training=True)
        return jnp.mean((predicted - wanted) ** 2), states

    def training(inputs: Dict[str, Any]) -> Any:
        # Whatever is computed from the matrix is on its device.
        zero = 0 * inputs["matrix"][0, 0]
        weights, states = [one + zero for one in at_first], list(others)
        for _ in range(STEPS):
            gradients, states = jax.grad(loss, has_aux=True)(weights, states)
            weights = [one - LEARNING_RATE * gradient for one, gradient in zip(weights, gradients)]
        return _flat([*weights, *(one for one in states if jnp.issubdtype(one.dtype, jnp.floating))])

    return training


def _flat(arrays: Sequence[Any]) -> Any:
    return jnp.concatenate([array.ravel() for array in arrays])


def _bits_differ(one: Any, other: Any) -> Any:
    return jnp.any(_bits(one) != _bits(other))


def _bits(array: Any) -> Any:
    return jax.lax.bitcast_convert_type(array, jnp.dtype(f"uint{8 * array.dtype.itemsize}"))


_differs = jax.jit(_bits_differ)
