"""Whether random layers draw different numbers on each replica, measured by calling them."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import tensorflow as tf

from kdoctor_target.job.model import random_layers
from kdoctor_target.job.parts import describe

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


def _calls(model: Any, layers: Sequence[Any], batch: Any) -> Tuple[Dict[int, Call], str]:
    """The arguments with which the model calls each layer, by its id, and why others have none."""
    calls: Dict[int, Call] = {}
    reason = "the model does not call it at inference"
    for layer in layers:
        _record(layer, calls)
    try:
        model(batch[0] if isinstance(batch, tuple) else batch, training=False)
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
    arguments, named = call

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def step() -> Any:
        return strategy.run(lambda: tf.nest.flatten(layer(*arguments, training=True, **named))[0])

    drawn = (strategy.experimental_local_results(step()) for _ in range(_DRAWS))
    return [[part.numpy().tobytes() for part in parts] for parts in drawn]
