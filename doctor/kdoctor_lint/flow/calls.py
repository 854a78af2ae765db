"""What a call does and returns, by the kind of its callee."""

import ast
from collections.abc import Callable, Mapping
from typing import Any

from kdoctor_lint.flow.call import Call, unknown
from kdoctor_lint.flow.environment import Env, Function
from kdoctor_lint.flow.externals import external
from kdoctor_lint.flow.interpreter import Interpreter
from kdoctor_lint.flow.methods import method, update
from kdoctor_lint.flow.removals import note_call
from kdoctor_lint.flow.values import (
    UNKNOWN,
    Class,
    External,
    Foreign,
    Layer,
    LossObject,
    Made,
    Many,
    Method,
    Metric,
    Model,
    Object,
    Optimizer,
    Place,
    Scaled,
    Tensor,
    Truth,
    Value,
)
from kdoctor_lint.names import Kind, kind_of

_MADE: tuple[tuple[Kind, type[Made]], ...] = (
    (Kind.MODEL, Model),
    (Kind.LAYER, Layer),
    (Kind.OPTIMIZER, Optimizer),
    (Kind.METRIC, Metric),
)


def evaluate_call(interpreter: Interpreter, node: Any, env: Env) -> Value:
    """What a call returns."""
    callee = interpreter.evaluate(node.func, env)
    args: list[Value] = []
    keywords: dict[str, Value] = {}
    spread = False
    for arg in node.args:
        value = interpreter.evaluate(arg, env)
        if isinstance(arg, ast.Starred):
            spread = True
        elif not spread:
            args.append(value)
    for keyword in node.keywords:
        value = interpreter.evaluate(keyword.value, env)
        if keyword.arg is None:
            spread = True
        else:
            keywords[keyword.arg] = value
    call = Call(interpreter, node, args, keywords, spread)
    note_call(call, callee)
    return _BY_CALLEE.get(callee.__class__, unknown)(call, callee)


def _function(call: Call, callee: Function) -> Value:
    decorators = getattr(callee.node, "decorator_list", [])
    if any(isinstance(item, ast.Name) and item.id == "classmethod" for item in decorators):
        return unknown(call, callee)
    if isinstance(callee.receiver, Model) and getattr(callee.node, "name", "") == "call":
        _first_call(call, callee.receiver)
    if isinstance(callee.receiver, Optimizer):
        update(call, callee.receiver, getattr(callee.node, "name", ""))
    return call.follow(callee)


def unseen_instance(cls: Class) -> Object:
    """An instance of a class of the script, about whose creation nothing is known."""
    kinds = {kind_of(base) for base in cls.external_bases()}
    for kind, made in _MADE[:2]:
        if kind in kinds:
            return made(cls.node, Place.UNSURE, None, cls=cls)
    return Object(cls=cls)


def _class(call: Call, callee: Class) -> Value:
    instance = _instance(call, callee)
    start = callee.member("__init__")
    if isinstance(start, Function):
        before = len(call.interpreter.entered)
        call.follow(Function(start.node, start.env, instance))
        if isinstance(instance, Made) and instance.place is Place.OUTSIDE and call.interpreter.entered[before:]:
            # Its __init__ creates the variables in a scope.
            instance.place, instance.strategy = Place.INSIDE, call.interpreter.entered[-1]
        if isinstance(instance, Model | Layer):
            held = instance.attributes.values()
            call.draw(item for value in held for item in (value.items if isinstance(value, Many) else [value]))
    elif type(instance) is Object:
        # A dataclass, or a base class outside the file.
        call.pass_on()
    return instance


def _instance(call: Call, cls: Class) -> Object:
    kinds = {kind_of(base) for base in cls.external_bases()}
    for kind, made in _MADE:
        if kind in kinds:
            instance = call.create(made, cls=cls)
            if isinstance(instance, Model):
                instance.lazy = True
                call.interpreter.add_model(instance)
            return instance
    if Kind.UNKNOWN in kinds and call.interpreter.place is not Place.OUTSIDE:
        call.interpreter.trace.unclear = True
        if call.interpreter.place is Place.INSIDE:
            return call.create(Foreign, cls=cls)
    return Object(cls=cls)


def _apply(call: Call, callee: Layer | Model) -> Value:
    """A layer or a model is called. Only symbolic inputs matter, because they build a model."""
    if isinstance(callee, Model):
        _first_call(call, callee)
    symbolic = [value for value in call.args if isinstance(value, Tensor)]
    if not symbolic:
        return UNKNOWN
    if isinstance(callee, Model):
        call.build_on([callee])
        return Tensor(callee.node, callee.place, call.interpreter.strategy)
    call.draw([callee])
    if callee.weightless:
        return symbolic[0]
    before = next((value for value in symbolic if value.place is Place.OUTSIDE), None)
    return Tensor(before.node, Place.OUTSIDE, None) if before else call.create(Tensor)


def _first_call(call: Call, model: Model) -> None:
    """The first call of a model creates its variables, on every replica if the step runs there."""
    interpreter = call.interpreter
    training = call.keywords.get("training")
    if isinstance(training, Truth) and not training.value:
        interpreter.trace.freezes = True
    if model.lazy and model.place is Place.OUTSIDE and interpreter.in_replica:
        model.place, model.strategy = Place.INSIDE, interpreter.strategy
    model.lazy = False


def _object(call: Call, callee: Object) -> Value:
    member = callee.cls.member("__call__") if callee.cls else None
    if isinstance(member, Function):
        return call.follow(Function(member.node, member.env, callee))
    return unknown(call, callee)


_BY_CALLEE: Mapping[type, Callable[[Call, Any], Value]] = {
    External: external,
    Method: method,
    Function: _function,
    Class: _class,
    Object: _object,
    Model: _apply,
    Layer: _apply,
    Metric: lambda call, metric: update(call, metric, "update_state"),
    LossObject: lambda *_: Scaled(),  # Keras 3 divides it by the number of replicas
}
