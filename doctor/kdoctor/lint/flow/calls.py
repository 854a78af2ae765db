"""What a call does, and what it gives."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from kdoctor.lint.flow.arguments import Arguments
from kdoctor.lint.flow.environment import Env
from kdoctor.lint.flow.machine import Machine
from kdoctor.lint.flow.pipelines import pipeline
from kdoctor.lint.flow.trace import Called, Compiled, Distributed, Fitted, Normalized, Saved, Used
from kdoctor.lint.flow.values import (
    UNKNOWN,
    Callback,
    Class,
    Counted,
    Dataset,
    External,
    Function,
    Layer,
    Made,
    Many,
    Method,
    Metric,
    Model,
    Number,
    Object,
    Optimizer,
    Place,
    Scope,
    Strategy,
    Tensor,
    Text,
    Truth,
    Value,
)
from kdoctor.lint.names import (
    BATCH_NORMALIZATION,
    GLOBAL_STRATEGY,
    LIST_LOCAL_DEVICES,
    MULTI_GPU_MODEL,
    WEIGHTLESS,
    Kind,
    class_kind,
    kind_of,
    strategy_kind,
)


def call(machine: Machine, node: Any, env: Env) -> Value:
    """What a call gives."""
    callee = machine.evaluate(node.func, env)
    args: list[Value] = []
    keywords: dict[str, Value] = {}
    spread = False
    for arg in node.args:
        value = machine.evaluate(arg, env)
        if arg.__class__ is ast.Starred:
            spread = True
        elif not spread:
            args.append(value)
    for keyword in node.keywords:
        value = machine.evaluate(keyword.value, env)
        if keyword.arg is None:
            spread = True
        else:
            keywords[keyword.arg] = value
    handler = _BY_CALLEE.get(callee.__class__, _unknown)
    return handler(machine, node, callee, Arguments(args, keywords, spread))


def _unknown(machine: Machine, node: ast.Call, callee: Any, given: Arguments) -> Value:
    """Code that this file does not show: it might do anything with what it gets, and make models where it stands."""
    del node, callee
    given.let_go()
    if machine.place is not Place.OUTSIDE:
        machine.trace.unclear = True
    return UNKNOWN


def _function(machine: Machine, node: ast.Call, callee: Function, given: Arguments) -> Value:
    if getattr(callee.node, "decorator_list", None) and _takes_class(callee.node):
        return _unknown(machine, node, callee, given)
    return machine.follow(callee, given.args, given.keywords, spread=given.spread)


def _takes_class(node: Any) -> bool:
    return any(isinstance(item, ast.Name) and item.id == "classmethod" for item in node.decorator_list)


def synthetic(cls: Class) -> Object:
    """An instance of a class of the script of which nothing is known."""
    kinds = {class_kind(base) for base in cls.external_bases()}
    if Kind.MODEL in kinds:
        return Model(cls.node, Place.UNSURE, None, cls)
    if Kind.LAYER in kinds:
        return Layer(cls.node, Place.UNSURE, None, cls)
    return Object(cls)


def _class(machine: Machine, node: ast.Call, callee: Class, given: Arguments) -> Value:
    """A class of the script is instantiated."""
    instance = _instance(machine, node, callee)
    start = callee.member("__init__")
    if isinstance(start, Function):
        machine.follow(Function(start.node, start.env, instance), given.args, given.keywords, spread=given.spread)
    elif type(instance) is Object:
        # A dataclass, or a base that this file does not show.
        given.let_go()
    return instance


def _instance(machine: Machine, node: ast.Call, cls: Class) -> Object:
    kinds = {class_kind(base) for base in cls.external_bases()}
    place, strategy = machine.place, machine.strategy
    if Kind.MODEL in kinds:
        model = Model(node, place, strategy, cls)
        machine.add_model(model)
        return model
    if Kind.LAYER in kinds:
        return Layer(node, place, strategy, cls)
    if Kind.OPTIMIZER in kinds:
        return Optimizer(node, place, strategy, cls)
    if Kind.METRIC in kinds:
        return Metric(node, place, strategy, cls)
    if Kind.UNKNOWN in kinds and place is not Place.OUTSIDE:
        machine.trace.unclear = True
    return Object(cls)


def _external(machine: Machine, node: ast.Call, callee: External, given: Arguments) -> Value:
    """A function or class of another module."""
    name = callee.name
    maker = _MAKERS.get(kind_of(name))
    if maker is not None:
        return maker(machine, node, name, given)
    return _harmless(machine, node, name, given)


def _harmless(machine: Machine, node: ast.Call, name: str, given: Arguments) -> Value:
    """A function of a library that is known to open no scope and to make no model."""
    builtin = _BUILTINS.get(name)
    if builtin is not None:
        return builtin(given)
    if LIST_LOCAL_DEVICES.match(name) or MULTI_GPU_MODEL.match(name):
        machine.trace.calls.append(Called(node=node, name=name))
    elif GLOBAL_STRATEGY.match(name) and given.args:
        strategy = given.args[0]
        machine.strategy = strategy if isinstance(strategy, Strategy) else None
        machine.place = Place.INSIDE if machine.strategy else Place.UNSURE
    elif name in _WRITERS:
        _saved(machine, node, given.get(1, "export_dir", "filepath"), name)
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
        _built_on(machine, layers)
        if layers and all(isinstance(layer, Layer) and layer.weightless for layer in layers):
            # Augmentation: nothing of it is trained, so it may be made anywhere.
            return Model(node, Place.UNSURE, None)
    model = Model(origin, place, strategy)
    machine.add_model(model)
    if place is Place.OUTSIDE and machine.place is Place.INSIDE:
        machine.trace.used.append(Used(node=node, made=model, strategy=machine.strategy))
    return model


def _built_on(machine: Machine, parts: Any) -> None:
    """Models that become part of one that is made here."""
    for part in parts:
        if isinstance(part, Model) and part.place is Place.OUTSIDE and machine.place is Place.INSIDE:
            machine.trace.used.append(Used(node=part.node, made=part, strategy=machine.strategy))


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
        _saved(machine, node, path, short)
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
    Kind.UNKNOWN: _unknown,
}


def _strategy_method(machine: Machine, node: ast.Call, strategy: Strategy, name: str, given: Arguments) -> Value:
    if name == "scope":
        return Scope(strategy)
    if name in {"run", "experimental_run_v2"}:
        return _run(machine, strategy, given)
    data = given.args[0] if given.args else UNKNOWN
    if name == "experimental_distribute_dataset" and isinstance(data, Dataset):
        machine.trace.distributed.append(Distributed(node=node, strategy=strategy, data=data))
    elif isinstance(data, Function):
        machine.follow(data, [UNKNOWN], {}, spread=True)
    return UNKNOWN


def _run(machine: Machine, strategy: Strategy, given: Arguments) -> Value:
    function = given.get(0, "fn")
    if not isinstance(function, Function):
        return UNKNOWN
    arguments = given.get(1, "args")
    args = arguments.items if isinstance(arguments, Many) else ()
    with machine.scoped(Place.INSIDE, strategy, in_replica=True):
        machine.follow(function, args, {}, spread=not isinstance(arguments, Many))
    return UNKNOWN


def _model_method(machine: Machine, node: ast.Call, model: Model | None, name: str, given: Arguments) -> Value:
    if name == "compile":
        _compiled(machine, node, model, given)
    elif name in {"fit", "fit_generator"}:
        _fitted(machine, node, model, given)
    elif name in {"save", "save_weights", "export"} and model is not None:
        _saved(machine, node, given.get(0, "filepath"), f"model.{name}")
    elif name == "add" and model is not None:
        _built_on(machine, given.args)
    return UNKNOWN


def _compiled(machine: Machine, node: ast.Call, model: Model | None, given: Arguments) -> None:
    if model is None and not {"optimizer", "loss"} & given.keywords.keys():
        return
    optimizer = given.get(0, "optimizer")
    metrics = given.get(2, "metrics")
    jit = given.keywords.get("jit_compile")
    machine.trace.compiled.append(
        Compiled(
            node=node,
            model=model,
            place=machine.place,
            strategy=machine.strategy,
            optimizer=optimizer if isinstance(optimizer, Optimizer) else None,
            metrics=tuple(item for item in metrics.items if isinstance(item, Metric))
            if isinstance(metrics, Many)
            else (),
            jit=isinstance(jit, Truth) and jit.value,
        )
    )


def _fitted(machine: Machine, node: ast.Call, model: Model | None, given: Arguments) -> None:
    machine.trace.fitted.append(
        Fitted(
            node=node,
            model=model,
            place=machine.place,
            strategy=machine.strategy,
            data=given.get(0, "x", "generator") or UNKNOWN,
            batch_size=given.get(2, "batch_size"),
            compiled=_last_compiled(machine, model),
            steps=given.spread or "steps_per_epoch" in given.keywords,
        )
    )


def _last_compiled(machine: Machine, model: Model | None) -> Compiled | None:
    if model is None:
        return None
    return next((event for event in reversed(machine.trace.compiled) if event.model is model), None)


def _saved(machine: Machine, node: ast.AST, path: Value | None, what: str) -> None:
    if isinstance(path, Text) and not machine.chief_only:
        machine.trace.saved.append(Saved(node=node, what=what, path=path.value, strategy=machine.strategy))


_UPDATES = frozenset({"apply_gradients", "apply", "minimize", "update_state"})


def _method(machine: Machine, node: ast.Call, callee: Method, given: Arguments) -> Value:
    """A method of something that the script did not define."""
    handler = _BY_RECEIVER.get(callee.receiver.__class__)
    return UNKNOWN if handler is None else handler(machine, node, callee.receiver, callee.name, given)


def _update(machine: Machine, node: ast.Call, receiver: Made, name: str, given: Arguments) -> Value:
    del given
    if machine.in_replica and name in _UPDATES:
        machine.trace.used.append(Used(node=node, made=receiver, strategy=machine.strategy))
    return UNKNOWN


def _pipe(machine: Machine, node: ast.Call, receiver: Value, name: str, given: Arguments) -> Value:
    del machine
    return pipeline(receiver, name, node, given)


def _entered(machine: Machine, node: ast.Call, receiver: Scope, name: str, given: Arguments) -> Value:
    """A scope is entered by hand: where it ends is not known."""
    del node, name, given
    return _taken_over(machine, receiver)


def _unknown_method(machine: Machine, node: ast.Call, receiver: Value, name: str, given: Arguments) -> Value:
    if name == "scope":
        return Scope(None, certain=False)
    if name in {"compile", "fit", "fit_generator"}:
        return _model_method(machine, node, None, name, given)
    if name in {"batch", "padded_batch"}:
        return pipeline(receiver, name, node, given)
    if name == "enter_context":
        for value in given.args:
            if isinstance(value, Scope):
                return _taken_over(machine, value)
    return _unknown(machine, node, None, given)


_BY_RECEIVER: Mapping[type, Callable[[Machine, ast.Call, Any, str, Arguments], Value]] = {
    Strategy: _strategy_method,
    Model: _model_method,
    Optimizer: _update,
    Metric: _update,
    Dataset: _pipe,
    Scope: _entered,
    Object: _unknown_method,
    Value: _unknown_method,
}
"""By the class of the receiver. Methods of the others (texts, layers, tensors) do nothing that a rule asks for."""


def _taken_over(machine: Machine, scope: Scope) -> Value:
    machine.trace.unclear = True
    if scope.strategy is not None:
        scope.strategy.escaped = True
    machine.place, machine.strategy = Place.UNSURE, None
    return UNKNOWN


def _measure(machine: Machine, node: ast.Call, callee: Metric, given: Arguments) -> Value:
    """A metric is called on values."""
    return _update(machine, node, callee, "update_state", given)


def _apply(machine: Machine, node: ast.Call, callee: Layer | Model, given: Arguments) -> Value:
    """A layer or a model is called on its inputs; the rules ask only for symbolic ones, which build a model."""
    symbolic = [value for value in given.args if isinstance(value, Tensor)]
    if not symbolic:
        return UNKNOWN
    if isinstance(callee, Model):
        _built_on(machine, [callee])
        return Tensor(callee.node, callee.place, machine.strategy)
    if callee.weightless:
        return symbolic[0]
    before = next((value for value in symbolic if value.place is Place.OUTSIDE), None)
    return Tensor(before.node, Place.OUTSIDE, None) if before else Tensor(node, machine.place, machine.strategy)


def _object(machine: Machine, node: ast.Call, callee: Object, given: Arguments) -> Value:
    member = callee.cls.member("__call__") if callee.cls else None
    if isinstance(member, Function):
        return machine.follow(
            Function(member.node, member.env, callee), given.args, given.keywords, spread=given.spread
        )
    return _unknown(machine, node, callee, given)


_BY_CALLEE: Mapping[type, Callable[[Machine, ast.Call, Any, Arguments], Value]] = {
    External: _external,
    Method: _method,
    Function: _function,
    Class: _class,
    Object: _object,
    Model: _apply,
    Layer: _apply,
    Metric: _measure,
}


def _range(given: Arguments) -> Value:
    count = given.args[-1] if given.args else UNKNOWN
    return Counted(count) if isinstance(count, Number) and len(given.args) == 1 else UNKNOWN


def _len(given: Arguments) -> Value:
    value = given.args[0] if given.args else UNKNOWN
    return Number(len(value.items)) if isinstance(value, Many) else UNKNOWN


def _same(given: Arguments) -> Value:
    value = given.args[0] if given.args else UNKNOWN
    return value if isinstance(value, Number | Text | Many | Counted) else UNKNOWN


def _joined(given: Arguments) -> Value:
    if all(isinstance(value, Text) for value in given.args) and not given.spread:
        return Text("/".join(value.value for value in given.args if isinstance(value, Text)))
    return UNKNOWN


_BUILTINS: Mapping[str, Callable[[Arguments], Value]] = {
    "builtins.range": _range,
    "builtins.len": _len,
    "builtins.int": _same,
    "builtins.float": _same,
    "builtins.str": _same,
    "builtins.list": _same,
    "builtins.tuple": _same,
    "os.path.join": _joined,
    "pathlib.Path": _joined,
}
