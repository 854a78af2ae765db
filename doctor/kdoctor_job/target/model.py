"""The job's model: the scopes in which it and its optimizer were made, its variables, its BatchNormalization."""

from __future__ import annotations

import inspect
from typing import Any, Dict, Iterator, List, Optional

import numpy as np

from kdoctor_job.target.layers import is_built, normalisations, random_layers
from kdoctor_job.target.parts import is_default, is_own_class, keras_of
from kdoctor_target.training.replicas import read_copies

Facts = Dict[str, Any]
CLIPPING = ("clipnorm", "global_clipnorm", "clipvalue")
"""The options of every optimizer of Keras that clip gradients."""


def examine_model(model: Any, strategy: Any) -> Facts:
    """The model's facts, by the names of ``JobModel``'s fields, without changing it."""
    optimizer = getattr(model, "optimizer", None)
    facts: Facts = {
        "name": type(model).__name__,
        "made_in": _place(strategy_of_model(model), strategy),
        "built": is_built(model),
        "compiled": is_compiled(model),
    }
    if facts["built"]:
        trainable = list(model.trainable_variables)
        apart = [] if is_default(strategy) else list(_not_on_each(trainable, strategy))
        facts.update(trainable=len(trainable), mirrored=len(trainable) - len(apart))
        facts["not_mirrored"] = [getattr(one, "path", one.name) for one in apart]
    facts["normalisations"] = [layer.name for layer in normalisations(model)]
    if optimizer is not None:
        facts["compiled_in"] = _place(_strategy_of_optimizer(optimizer), strategy)
        facts.update(_learning_rate(optimizer), clipping=_clipping(optimizer))
    keras = keras_of(model)
    facts["keras"] = f"{keras.__name__.partition('.')[0]} {getattr(keras, '__version__', '')}".strip()
    facts["steps_per_execution"] = steps_per_execution(model)
    drawing = random_layers(model)
    facts["random_layers"] = [layer.name for layer in drawing] if facts["built"] else None
    facts["own_random_layers"] = [layer.name for layer in drawing if is_own_class(type(layer))]
    return facts


def _not_on_each(variables: List[Any], strategy: Any) -> Iterator[Any]:
    replicas = set(strategy.extended.worker_devices)
    for one in variables:
        if {copy.device for copy in read_copies(strategy, one)} != replicas:
            yield one


def is_compiled(model: Any) -> bool:
    """Whether ``compile`` was called."""
    return bool(getattr(model, "compiled", getattr(model, "_is_compiled", False)))


def is_real(variable: Any) -> bool:
    """Whether the variable holds floating-point numbers."""
    kind = variable.dtype
    name = kind if isinstance(kind, str) else kind.name
    return "float" in name


def strategy_of_model(model: Any) -> Any:
    """The strategy in whose scope the model was made; None if it was made in none."""
    return getattr(model, "_distribute_strategy", getattr(model, "_distribution_strategy", None))


def _strategy_of_optimizer(optimizer: Any) -> Any:
    """The strategy of the optimizer, from its first variable if that is mirrored."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    found = getattr(inner, "_distribution_strategy", None)
    if found is None:
        found = getattr(inner, "_distribute_strategy", getattr(inner, "_mesh", None))
    return found


def _place(found: Any, strategy: Any) -> str:
    if found is not None and found.extended is strategy.extended:  # also of what replaces a strategy
        return "scope"
    if found is None or is_default(found):
        return "scope" if is_default(strategy) else "outside"
    return "another strategy"


def _learning_rate(optimizer: Any) -> Facts:
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    facts: Facts = {"optimizer": type(inner).__name__, "default_learning_rate": _default_rate(type(inner))}
    rate: Any = getattr(inner, "_learning_rate", None)
    if callable(getattr(rate, "get_config", None)):
        facts["schedule"] = type(rate).__name__
    elif callable(rate) and not hasattr(rate, "numpy"):
        facts["schedule"] = getattr(rate, "__name__", type(rate).__name__)
    elif rate is not None:
        facts["learning_rate"] = float(rate.numpy() if hasattr(rate, "numpy") else rate)
    return facts


def _clipping(optimizer: Any) -> Optional[List[str]]:
    """The clipping of an optimizer and of the one that it wraps; None if the inner one does not report it."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if not all(hasattr(inner, name) for name in CLIPPING):
        return None
    both = {id(one): one for one in (optimizer, inner)}.values()
    values = [(name, getattr(one, name, None)) for one in both for name in CLIPPING]
    return [f"{name}={float(value):g}" for name, value in values if value]


def steps_per_execution(model: Any) -> Optional[int]:
    """Steps in each call of the compiled function; None if the model does not report a number."""
    kept = getattr(model, "steps_per_execution", getattr(model, "_steps_per_execution", None))
    number = kept.numpy() if kept is not None and hasattr(kept, "numpy") else kept
    return int(number) if isinstance(number, (int, np.integer)) else None


def _default_rate(kind: Any) -> Optional[float]:
    parameter = inspect.signature(kind.__init__).parameters.get("learning_rate")
    known = parameter is not None and isinstance(parameter.default, float)
    return float(parameter.default) if parameter is not None and known else None


def raw_compile(model: Any) -> Optional[Facts]:
    """The arguments that the ``compile`` of Keras got; None if they are unknown."""
    kept = getattr(model, "_compile_config", None)
    return None if kept is None else dict(kept.config)
