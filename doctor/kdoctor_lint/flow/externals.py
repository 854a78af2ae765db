"""What a function or a class of another module does when it is called, and what it gives."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from kdoctor_lint.flow.arguments import Arguments
from kdoctor_lint.flow.effects import built_on, saved, unknown
from kdoctor_lint.flow.interpreter import Machine
from kdoctor_lint.flow.known_functions import KNOWN_FUNCTIONS
from kdoctor_lint.flow.trace import Called, Normalized, Used
from kdoctor_lint.flow.values import (
    UNKNOWN,
    Callback,
    Dataset,
    External,
    Layer,
    Many,
    Metric,
    Model,
    Optimizer,
    Place,
    Strategy,
    Tensor,
    Truth,
    Value,
)
from kdoctor_lint.names import (
    BATCH_NORMALIZATION,
    GLOBAL_STRATEGY,
    LIST_LOCAL_DEVICES,
    MULTI_GPU_MODEL,
    WEIGHTLESS,
    Kind,
    kind_of,
    strategy_kind,
)


def external(machine: Machine, node: ast.Call, callee: External, given: Arguments) -> Value:
    """A function or class of another module."""
    name = callee.name
    maker = _MAKERS.get(kind_of(name))
    if maker is not None:
        return maker(machine, node, name, given)
    return _harmless(machine, node, name, given)


def _harmless(machine: Machine, node: ast.Call, name: str, given: Arguments) -> Value:
    """A function of a library that is known to open no scope and to make no model."""
    builtin = KNOWN_FUNCTIONS.get(name)
    if builtin is not None:
        return builtin(given)
    if LIST_LOCAL_DEVICES.match(name) or MULTI_GPU_MODEL.match(name):
        machine.trace.calls.append(Called(node=node, name=name))
    elif GLOBAL_STRATEGY.match(name) and given.args:
        strategy = given.args[0]
        machine.strategy = strategy if isinstance(strategy, Strategy) else None
        machine.place = Place.INSIDE if machine.strategy else Place.UNSURE
    elif name in _WRITERS:
        saved(machine, node, given.get(1, "export_dir", "filepath"), name)
    if name.partition(".")[0] not in _KEEPERS:
        given.let_go()
    return UNKNOWN


_KEEPERS = frozenset({"builtins", "logging", "math", "numpy"})
"""Modules whose functions do nothing with a strategy that they are given."""
_WRITERS = frozenset({"tensorflow.saved_model.save", "keras.models.save_model", "keras.saving.save_model"})


def _strategy(machine: Machine, node: ast.Call, name: str, given: Arguments) -> Value:
    devices = given.get(0, "devices", "compute_devices") or UNKNOWN
    strategy = Strategy(frozenset({strategy_kind(name)}), node, devices)
    machine.add_strategy(strategy)
    return strategy


def _model(machine: Machine, node: ast.Call, name: str, given: Arguments) -> Value:
    place, strategy, origin = machine.place, machine.strategy, node
    outputs = given.get(1, "outputs")
    ends = outputs.items if isinstance(outputs, Many) else [outputs]
    for end in ends:
        if isinstance(end, Tensor) and end.place is Place.OUTSIDE and place is Place.INSIDE:
            place, strategy, origin = Place.OUTSIDE, None, end.node  # type: ignore[assignment]
    if name.endswith("Sequential"):
        stack = given.get(0, "layers")
        layers = stack.items if isinstance(stack, Many) else ()
        built_on(machine, layers)
        if layers and all(isinstance(layer, Layer) and layer.weightless for layer in layers):
            # Augmentation: nothing of it is trained, so it may be made anywhere.
            return Model(node, Place.UNSURE, None)
    model = Model(origin, place, strategy)
    machine.add_model(model)
    if place is Place.OUTSIDE and machine.place is Place.INSIDE:
        machine.trace.used.append(Used(node=node, made=model, strategy=machine.strategy))
    return model


def _loaded(machine: Machine, node: ast.Call, name: str, given: Arguments) -> Value:
    del name, given
    model = Model(node, machine.place, machine.strategy, loaded=True)
    machine.add_model(model)
    return model


def _input(machine: Machine, node: ast.Call, name: str, given: Arguments) -> Value:
    del name, given
    # It has no variables, so it belongs to no place.
    return Tensor(node, Place.UNSURE, machine.strategy)


def _layer(machine: Machine, node: ast.Call, name: str, given: Arguments) -> Value:
    if BATCH_NORMALIZATION.match(name):
        guards = (given.keywords.get("synchronized"), given.keywords.get("trainable"))
        harmless = (isinstance(guards[0], Truth) and guards[0].value) or (
            isinstance(guards[1], Truth) and not guards[1].value
        )
        unsure = given.spread or any(guard is not None and not isinstance(guard, Truth) for guard in guards)
        machine.trace.normalized.append(Normalized(node=node, guarded=harmless or unsure or "Sync" in name))
    return Layer(node, machine.place, machine.strategy, weightless=WEIGHTLESS.match(name) is not None)


def _optimizer(machine: Machine, node: ast.Call, name: str, given: Arguments) -> Value:
    inner = given.get(0, "inner_optimizer")
    if name.endswith("LossScaleOptimizer") and isinstance(inner, Optimizer):
        return inner
    rate = given.get(0, "learning_rate", "lr") or UNKNOWN
    return Optimizer(node, machine.place, machine.strategy, rate=rate)


def _metric(machine: Machine, node: ast.Call, name: str, given: Arguments) -> Value:
    del name, given
    return Metric(node, machine.place, machine.strategy)


def _callback(machine: Machine, node: ast.Call, name: str, given: Arguments) -> Value:
    short = name.rpartition(".")[2]
    machine.trace.callbacks.add(short)
    path = given.get(0, "filepath") or UNKNOWN
    if short == "ModelCheckpoint":
        saved(machine, node, path, short)
    return Callback(short, node, path)


def _dataset(machine: Machine, node: ast.Call, name: str, given: Arguments) -> Value:
    del machine, node
    parts = given.args[0].items if given.args and isinstance(given.args[0], Many) else given.args
    if name.endswith(".zip"):
        shown = all(isinstance(part, Dataset) and part.batch is None and part.source_shown for part in parts)
        return Dataset(source_shown=shown) if not any(_is_batched(part) for part in parts) else UNKNOWN
    return Dataset(source_shown=True)


def _is_batched(value: Value) -> bool:
    return isinstance(value, Dataset) and value.batch is not None


def _ready(machine: Machine, node: ast.Call, name: str, given: Arguments) -> Value:
    del machine, node, name, given
    dataset = Dataset(source_shown=False)
    dataset.prefetched = dataset.repeated = dataset.truncated = True
    return dataset


def _first(machine: Machine, node: ast.Call, name: str, given: Arguments) -> Value:
    del machine, node, name
    return given.args[0] if given.args else UNKNOWN


_MAKERS: Mapping[Kind, Callable[[Machine, ast.Call, str, Arguments], Value]] = {
    Kind.STRATEGY: _strategy,
    Kind.MODEL: _model,
    Kind.LOADED: _loaded,
    Kind.INPUT: _input,
    Kind.LAYER: _layer,
    Kind.OPTIMIZER: _optimizer,
    Kind.METRIC: _metric,
    Kind.CALLBACK: _callback,
    Kind.DATASET: _dataset,
    Kind.READY_DATASET: _ready,
    Kind.TRANSPARENT: _first,
    Kind.UNKNOWN: unknown,
}
