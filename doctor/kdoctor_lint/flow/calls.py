"""What a call does and returns, by the kind of its callee."""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any

from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.call import Call, sized, unknown
from kdoctor_lint.flow.environment import Env, Function
from kdoctor_lint.flow.externals import external
from kdoctor_lint.flow.interpreter import Interpreter
from kdoctor_lint.flow.joining import join
from kdoctor_lint.flow.methods import method, update
from kdoctor_lint.flow.removals import note_call
from kdoctor_lint.flow.values import UNKNOWN, Value
from kdoctor_lint.names import BATCH_NORMALIZATION, HAS_SLOTS, Kind, kind_of

_MADE: tuple[tuple[Kind, type[val.Made]], ...] = (
    (Kind.MODEL, val.Model),
    (Kind.LAYER, val.Layer),
    (Kind.OPTIMIZER, val.Optimizer),
    (Kind.METRIC, val.Metric),
)

_SIGNS = {"add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "div": ast.Div}
_OPERATION = re.compile(r"(tensorflow(\.math)?|keras\.ops)\.(?P<name>add|subtract|multiply|divide(_no_nan)?)")
"""Functions that do what an operator does."""


def evaluate_call(interpreter: Interpreter, node: Any, env: Env) -> Value:
    """What a call returns."""
    callee = interpreter.evaluate(node.func, env)
    args: list[Value] = []
    keywords: dict[str, Value] = {}
    spread = False
    for arg in node.args:
        value = interpreter.evaluate(arg, env)
        if isinstance(arg, ast.Starred):
            parts = [value] if isinstance(value, val.Gradients) else getattr(value, "items", ())
            args += () if spread or isinstance(value, val.Table) else parts
            spread = spread or not (isinstance(value, val.Many) and value.whole)
        elif not spread:
            args.append(value)
    for keyword in node.keywords:
        value = interpreter.evaluate(keyword.value, env)
        if keyword.arg is None:
            keywords |= value.items if isinstance(value, val.Table) else {}
            spread = spread or not isinstance(value, val.Table) or not value.whole
        else:
            keywords[keyword.arg] = value
    if isinstance(callee, val.Partial):
        args, keywords, spread = [*callee.args, *args], {**callee.keywords, **keywords}, spread or callee.spread
        callee = callee.callee
    if isinstance(callee, val.External) and callee.name == "builtins.super":
        return _super(interpreter, args)
    call = Call(interpreter, node, args, keywords, spread)
    note_call(call, callee, env)
    modes = args[1:] if isinstance(getattr(callee, "receiver", callee), val.Model) else []
    interpreter.trace.trains |= True in map(val.truth_of, [*modes, keywords.get("training", UNKNOWN)])
    operation = _OPERATION.fullmatch(callee.name) if isinstance(callee, val.External) else None
    if operation is not None and len(args) == 2:  # noqa: PLR2004 - ``tf.add(one, other)``
        inner = Env(env)
        inner.names.update(one=args[0], other=args[1])
        sign = ast.BinOp(ast.Name("one"), _SIGNS[operation["name"][:3]](), ast.Name("other"))
        vars(sign).update(vars(node))
        return interpreter.evaluate(sign, inner)
    return _BY_CALLEE.get(callee.__class__, unknown)(call, callee)


def _super(interpreter: Interpreter, args: Sequence[Value]) -> Value:
    method = next(iter(interpreter.running[-1:]), None)
    cls, owner = (args[0] if args else method.cls, method.receiver) if method is not None else (None, None)
    return val.Super(cls, owner) if isinstance(cls, val.Class) and isinstance(owner, val.Object) else UNKNOWN


def _function(call: Call, callee: Function) -> Value:
    if isinstance(callee.receiver, val.Model) and getattr(callee.node, "name", "") == "call":
        _first_call(call, callee.receiver)
    if isinstance(callee.receiver, val.Optimizer):
        update(call, callee.receiver, getattr(callee.node, "name", ""))
    returned = call.follow(callee)
    if _yields_arrays(callee):
        return val.Batches()
    return sized(call) if returned is UNKNOWN else returned


def _yields_arrays(function: Function) -> bool:
    """Whether a generator makes its batches from arrays, and not from a distributed dataset."""
    parts = _yielded(function.node)
    return bool(parts) and all(_is_array(part, function) for part in parts)


@lru_cache(maxsize=64)
def _yielded(function: ast.AST) -> tuple[ast.expr, ...]:
    nodes = list(ast.walk(function))
    yielded = [node.value for node in nodes if isinstance(node, ast.Yield) and node.value is not None]
    made = (
        {ast.unparse(node.targets[0]): node.value for node in nodes if isinstance(node, ast.Assign)} if yielded else {}
    )
    parts = [part for value in yielded for part in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return tuple(made.get(ast.unparse(part), part) for part in parts)


def _is_array(node: ast.expr, function: Function) -> bool:
    if isinstance(node, ast.Subscript):
        return not isinstance(node.slice, ast.Constant)
    root = ast.unparse(node).partition(".")[0] if isinstance(node, ast.Call) else ""
    module = function.env.get(root)
    return isinstance(module, val.External) and module.name.startswith(("numpy", "tensorflow"))


def unseen_instance(cls: val.Class) -> val.Object:
    """An instance of a class of the script, about whose creation nothing is known."""
    kinds = {kind_of(base) for base in cls.external_bases()}
    for kind, made in _MADE[:2]:
        if kind in kinds:
            return made(cls.node, val.Place.UNSURE, None, cls=cls)
    return val.Object(cls=cls)


def _chosen(call: Call, callee: val.Choice) -> Value:
    call.interpreter.trace.handed |= {id(getattr(option, "node", None)) for option in callee.options}
    return reduce(join, [_BY_CALLEE[option.__class__](call, option) for option in callee.options])


def _class(call: Call, callee: val.Class) -> Value:
    instance = _instance(call, callee)
    start = callee.member("__init__")
    if isinstance(start, Function):
        before = len(call.interpreter.entered)
        call.follow(start.bound(instance))
        if isinstance(instance, val.Made) and instance.place is val.Place.OUTSIDE and call.interpreter.entered[before:]:
            # Its __init__ creates the variables in a scope.
            instance.place, instance.strategy = val.Place.INSIDE, call.interpreter.entered[-1]
        known = call.interpreter.receivers.get(id(callee.node))
        if known is not None:
            # What a method may find that is called from anywhere.
            known.attributes |= {
                name: value for name, value in instance.attributes.items() if name not in known.attributes
            }
    for run in map(callee.member, ("build", "call")) if isinstance(instance, val.Model | val.Layer) else ():
        if isinstance(run, Function):
            call.interpreter.follow(run.bound(instance), [], {}, spread=True)
    if isinstance(instance, val.Model | val.Layer):
        for name, value in instance.attributes.items():
            drawn = [item for item in getattr(value, "items", [value]) if isinstance(item, val.Layer) and item.random]
            if drawn and (callee.member("call") is None or _uses(callee, name)):
                call.draw(drawn)
    return instance


def _uses(cls: val.Class, name: str) -> bool:
    """Whether a method reads an attribute, whatever its arguments are. Those about training do not count."""
    for function in [node for node in ast.walk(cls.node) if isinstance(node, ast.FunctionDef)]:
        arguments = {item.arg for item in function.args.args[1:] if "train" not in item.arg}
        asks = [node for node in ast.walk(function) if isinstance(node, ast.If) and arguments & _names(node.test)]
        optional = {id(part) for node in asks for part in ast.walk(node)}
        read = (node for node in ast.walk(function) if isinstance(node, ast.Attribute) and node.attr == name)
        if any(isinstance(node.ctx, ast.Load) and id(node) not in optional for node in read):
            return True
    return any(isinstance(base, val.Class) and base is not cls and _uses(base, name) for base in cls.bases)


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _instance(call: Call, cls: val.Class) -> val.Object:
    kinds = {kind_of(base) for base in cls.external_bases()}
    for kind, made in _MADE:
        if kind in kinds:
            instance = call.create(made, cls=cls)
            if isinstance(instance, val.Layer):
                instance.normalizes = True
                call.interpreter.trace.batch_normalized |= any(map(BATCH_NORMALIZATION.match, cls.external_bases()))
            if isinstance(instance, val.Optimizer):
                instance.slots = any(map(HAS_SLOTS.match, cls.external_bases()))
            if isinstance(instance, val.Model):
                instance.lazy = True
                call.interpreter.trace.models.append(instance)
            return instance
    if Kind.UNKNOWN in kinds and call.interpreter.place is not val.Place.OUTSIDE:
        call.interpreter.trace.unclear = True
        if call.interpreter.place is val.Place.INSIDE:
            return call.create(val.Foreign, cls=cls)
    return val.Object(cls=cls, site=call.site)


def _apply(call: Call, callee: val.Layer | val.Model) -> Value:
    """A layer or a model is called. Only symbolic inputs matter, because they build a model."""
    if isinstance(callee, val.Model):
        _first_call(call, callee)
    given = map(val.parts, (*call.args, *call.keywords.values()))
    symbolic = [value for values in given for value in values if isinstance(value, val.Tensor)]
    if symbolic or isinstance(call.node.func, ast.Call):  # a layer that is made for this call is part of a model
        call.draw([callee])
    if not symbolic:
        run = callee.cls.member("call") if callee.cls is not None else None
        return call.follow(run.bound(callee)) if isinstance(run, Function) else UNKNOWN
    if isinstance(callee, val.Model):
        call.build_on([callee])
        return val.Tensor(callee.node, callee.place, call.interpreter.strategy)
    if callee.weightless:
        return symbolic[0]
    before = next((value for value in symbolic if value.place is val.Place.OUTSIDE), None)
    return val.Tensor(before.node, val.Place.OUTSIDE, None) if before else call.create(val.Tensor)


def _first_call(call: Call, model: val.Model) -> None:
    """The first call of a model creates its variables."""
    interpreter = call.interpreter
    training = call.keywords.get("training")
    if isinstance(training, val.Truth) and not training.value:
        interpreter.trace.freezes = True
    if model.lazy and model.place is val.Place.OUTSIDE and interpreter.place is val.Place.INSIDE:
        if interpreter.in_replica:
            events = interpreter.trace.compiled  # What was compiled before is for another loop.
            interpreter.trace.compiled = [event for event in events if event.model is not model]
        model.place, model.strategy = val.Place.INSIDE, interpreter.strategy
    model.lazy = False


def _object(call: Call, callee: val.Object) -> Value:
    member = callee.cls.member("__call__") if callee.cls else None
    if isinstance(member, Function):
        return call.follow(member.bound(callee))
    return unknown(call, callee)


def _loss(call: Call, loss: val.LossObject) -> Value:
    """Keras 3 divides a loss by the number of replicas, unless it is that of each example."""
    return val.PerExample(call.node, "loss of each example") if loss.each else val.SCALED


_BY_CALLEE: Mapping[type, Callable[[Call, Any], Value]] = {
    val.External: external,
    val.Method: method,
    Function: _function,
    val.Class: _class,
    val.Choice: _chosen,
    val.Object: _object,
    val.Model: _apply,
    val.Layer: _apply,
    val.Metric: lambda call, metric: update(call, metric, "update_state"),
    val.LossObject: _loss,
}
