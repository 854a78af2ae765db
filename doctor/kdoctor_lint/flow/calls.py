"""What a call does, and what it gives."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from kdoctor_lint.flow.arguments import Arguments
from kdoctor_lint.flow.effects import built_on, unknown
from kdoctor_lint.flow.environment import Env, Function
from kdoctor_lint.flow.externals import external
from kdoctor_lint.flow.interpreter import Machine
from kdoctor_lint.flow.methods import method, update
from kdoctor_lint.flow.values import (
    UNKNOWN,
    Class,
    External,
    Layer,
    Method,
    Metric,
    Model,
    Object,
    Optimizer,
    Place,
    Tensor,
    Value,
)
from kdoctor_lint.names import Kind, class_kind


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
    handler = _BY_CALLEE.get(callee.__class__, unknown)
    return handler(machine, node, callee, Arguments(args, keywords, spread))


def _function(machine: Machine, node: ast.Call, callee: Function, given: Arguments) -> Value:
    if getattr(callee.node, "decorator_list", None) and _takes_class(callee.node):
        return unknown(machine, node, callee, given)
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


def _measure(machine: Machine, node: ast.Call, callee: Metric, given: Arguments) -> Value:
    """A metric is called on values."""
    return update(machine, node, callee, "update_state", given)


def _apply(machine: Machine, node: ast.Call, callee: Layer | Model, given: Arguments) -> Value:
    """A layer or a model is called on its inputs; the rules ask only for symbolic ones, which build a model."""
    symbolic = [value for value in given.args if isinstance(value, Tensor)]
    if not symbolic:
        return UNKNOWN
    if isinstance(callee, Model):
        built_on(machine, [callee])
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
    return unknown(machine, node, callee, given)


_BY_CALLEE: Mapping[type, Callable[[Machine, ast.Call, Any, Arguments], Value]] = {
    External: external,
    Method: method,
    Function: _function,
    Class: _class,
    Object: _object,
    Model: _apply,
    Layer: _apply,
    Metric: _measure,
}
