"""Whether random layers draw different numbers on each replica, measured by calling them."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import tensorflow as tf

from kdoctor_target.job.model import random_layers

_DRAWS = 16
"""Draws of replicas that are equal until then are equal: by chance, a fair coin is so once in 2 ** 16 times."""

Call = Tuple[Any, Dict[str, Any]]


def draw(model: Any, strategy: Any, batch: Any) -> Dict[str, List[str]]:
    """The layers that draw equal numbers on two replicas, and those that do not, by the names of ``JobTraining``'s fields.

    Layers that cannot be called alone, and those whose result does not vary, are in neither.

    Args:
        model: a copy of the job's model, whose layers still draw.
        strategy: under which it was made.
        batch: an element of the data.
    """
    found: Dict[str, List[str]] = {"equal_draws": [], "different_draws": []}
    for layer, call in _calls(model, batch):
        try:
            draws = _draws(layer, call, strategy)
        except Exception:
            continue  # such as a cell inside a loop: its inputs exist there only
        if len({parts[0] for parts in draws}) > 1:
            equal = all(len(set(parts)) < len(parts) for parts in draws)
            found["equal_draws" if equal else "different_draws"].append(layer.name)
    return found


def _calls(model: Any, batch: Any) -> List[Tuple[Any, Call]]:
    """The random layers and the arguments with which the model calls them."""
    layers, calls = random_layers(model), {}
    for layer in layers:
        _record(layer, calls)
    try:
        model(batch[0] if isinstance(batch, tuple) else batch, training=False)
    except Exception:
        calls.clear()  # a custom train_step may call it in another way
    finally:
        for layer in layers:
            object.__delattr__(layer, "call")
    return [(layer, calls[id(layer)]) for layer in layers if id(layer) in calls]


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
