"""Whether random layers draw different numbers on each replica, measured by calling them."""

from __future__ import annotations

import inspect
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
import tensorflow as tf

from kdoctor_job.target.layers import layers_of, random_layers
from kdoctor_job.target.measures import QUIET
from kdoctor_job.target.own_fit import as_keras_gets
from kdoctor_job.target.parts import describe, is_own_class
from kdoctor_job.target.states import state_kept

_DRAWS = 16
"""Draws of replicas that are equal until then are equal: by chance, a fair coin is so once in 2 ** 16 times."""

Call = Tuple[Any, Dict[str, Any]]


def draw(model: Any, strategy: Any, batch: Any, names: Sequence[str]) -> Dict[str, Any]:
    """The layers that draw equal numbers on two replicas, and those that do not, by the names of the fields.

    Layers that were not measured are in ``undrawn``, with the reason.

    Args:
        model: a copy of the job's model, whose layers still draw.
        strategy: under which it was made.
        batch: an element of the data.
        names: the names of its random layers in the job's model. Keras numbers the layers of a copy again.
    """
    equal: List[str] = []
    different: List[str] = []
    undrawn: Dict[str, str] = {}
    layers = random_layers(model)
    calls, reason = _calls(model, layers, batch)
    for name, layer in zip(names, layers):
        if id(layer) not in calls:
            undrawn[name] = reason
            continue
        try:
            draws = _draws(layer, calls[id(layer)], strategy)
        except Exception as error:  # such as a cell in a loop: its inputs exist there only
            undrawn[name] = f"calling it alone raised {describe(error)}"
            continue
        if len({parts[0] for parts in draws}) == 1:
            undrawn[name] = f"its results are equal in all of {_DRAWS} calls with the first batch"
        elif all(len(set(parts)) < len(parts) for parts in draws):
            equal.append(name)
        else:
            different.append(name)
    return {"equal_draws": equal, "different_draws": different, "undrawn": undrawn}


def find_drawing(model: Any, strategy: Any, batch: Any) -> Dict[int, str]:
    """The layers of the job's own classes that draw random numbers without a generator of Keras, found by calling them.

    They use the random functions of TensorFlow or NumPy, for example. A layer that has such layers is not one itself.

    Args:
        model: a copy of the job's model.
        strategy: under which it was made.
        batch: an element of the data.

    Returns:
        Their places in ``layers_of``, and the fact that names them: ``equal_draws`` if two replicas drew the same
        numbers, else ``different_draws``.
    """
    layers = layers_of(model)
    random = {id(layer) for layer in random_layers(model)}
    candidates = [layer for layer in layers if is_own_class(type(layer))]
    calls, _ = _calls(model, [layer for layer in candidates if id(layer) not in random], batch)
    found: Dict[int, str] = {}
    for layer in reversed(candidates):  # inner layers come after the layers that have them
        if id(layer) not in calls or any(id(part) in random for part in layers_of(layer)):
            continue
        try:
            if not _is_random(layer, calls[id(layer)], len(tf.nest.flatten(batch)[0])):
                continue
            draws = _draws(layer, calls[id(layer)], strategy)
        except Exception:  # noqa: S112 - a layer that cannot be called alone stays as it is
            continue
        random.add(id(layer))
        equal = all(len(set(parts)) < len(parts) for parts in draws)
        found[layers.index(layer)] = "equal_draws" if equal else "different_draws"
    return found


def _is_random(layer: Any, call: Call, rows: int) -> bool:
    """Whether a second call has another result, or equal rows other ones than each other, as with one seed."""

    def alike(leaf: Any) -> Any:
        is_rows = tf.is_tensor(leaf) and leaf.shape.rank and leaf.shape[0] == rows
        return tf.repeat(leaf[:1], rows, 0) if is_rows else leaf

    def once() -> Any:
        with state_kept(layer):
            return np.asarray(tf.nest.flatten(_called(layer, tf.nest.map_structure(alike, call)))[0])

    first, second = once(), once()
    if first.tobytes() != second.tobytes():
        return True
    return first.shape[:1] == (rows,) and bool(np.ptp(first, axis=0).max() > QUIET * np.abs(first).max())


def takes_training(layer: Any) -> bool:
    """Whether the layer may compute something else at inference."""
    return "training" in inspect.signature(layer.call).parameters


def _calls(model: Any, layers: Sequence[Any], batch: Any) -> Tuple[Dict[int, Call], str]:
    """The arguments with which the model calls each layer, by its id, and why others have none."""
    calls: Dict[int, Call] = {}
    reason = "the model does not call it at inference"
    for layer in layers:
        _record(layer, calls)
    try:
        if layers:
            seen = as_keras_gets(model, batch)
            model(seen[0] if isinstance(seen, tuple) else seen, training=False)
    except Exception as error:  # a custom train_step may call it in another way
        calls.clear()
        reason = f"calling the model with the first batch raised {describe(error)}"
    finally:
        for layer in layers:
            object.__delattr__(layer, "call")
    return calls, reason


def _record(layer: Any, calls: Dict[int, Call]) -> None:
    call = layer.call

    def recording(*arguments: Any, **named: Any) -> Any:
        calls[id(layer)] = arguments, {name: value for name, value in named.items() if name != "training"}
        return call(*arguments, **named)

    object.__setattr__(layer, "call", recording)


def _draws(layer: Any, call: Call, strategy: Any) -> List[List[bytes]]:
    """The result of each draw on each replica."""

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def step() -> Any:
        return strategy.run(lambda: tf.nest.flatten(_called(layer, call))[0])

    drawn = []
    for _ in range(_DRAWS):
        with state_kept(layer):
            drawn.append([part.numpy().tobytes() for part in strategy.experimental_local_results(step())])
    return drawn


def _called(layer: Any, call: Call) -> Any:
    arguments, named = call
    for name in ("reset_dropout_mask", "reset_recurrent_dropout_mask"):  # a cell of Keras 2 keeps its masks
        getattr(layer, name, lambda: None)()
    return layer(*arguments, **named, **({"training": True} if takes_training(layer) else {}))
