"""What a method of something that the script did not define does, by whose method it is."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from kdoctor_lint.flow.arguments import Arguments
from kdoctor_lint.flow.effects import built_on, saved, unknown
from kdoctor_lint.flow.environment import Function
from kdoctor_lint.flow.interpreter import Machine
from kdoctor_lint.flow.pipelines import pipeline
from kdoctor_lint.flow.trace import Compiled, Distributed, Fitted, Used
from kdoctor_lint.flow.values import (
    UNKNOWN,
    Dataset,
    Made,
    Many,
    Method,
    Metric,
    Model,
    Object,
    Optimizer,
    Place,
    Scope,
    Strategy,
    Truth,
    Value,
)


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
        saved(machine, node, given.get(0, "filepath"), f"model.{name}")
    elif name == "add" and model is not None:
        built_on(machine, given.args)
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


_UPDATES = frozenset({"apply_gradients", "apply", "minimize", "update_state"})


def method(machine: Machine, node: ast.Call, callee: Method, given: Arguments) -> Value:
    """A method of something that the script did not define."""
    handler = _BY_RECEIVER.get(callee.receiver.__class__)
    return UNKNOWN if handler is None else handler(machine, node, callee.receiver, callee.name, given)


def update(machine: Machine, node: ast.Call, receiver: Made, name: str, given: Arguments) -> Value:
    """An optimizer or a metric changes its variables, which it may only where they were made for."""
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
    return unknown(machine, node, None, given)


_BY_RECEIVER: Mapping[type, Callable[[Machine, ast.Call, Any, str, Arguments], Value]] = {
    Strategy: _strategy_method,
    Model: _model_method,
    Optimizer: update,
    Metric: update,
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
