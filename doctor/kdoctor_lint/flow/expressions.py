"""What each kind of expression stands for."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from kdoctor_lint.flow.binding import bind
from kdoctor_lint.flow.calls import call
from kdoctor_lint.flow.environment import Env, Function
from kdoctor_lint.flow.interpreter import Evaluator, Machine, let_go
from kdoctor_lint.flow.joining import join
from kdoctor_lint.flow.trace import Used
from kdoctor_lint.flow.values import (
    NONE,
    UNKNOWN,
    Class,
    Counted,
    Dataset,
    External,
    Made,
    Many,
    Method,
    Number,
    Object,
    Text,
    Truth,
    Value,
)
from kdoctor_lint.names import canonical

_WEIGHTS = frozenset({"trainable_variables", "trainable_weights"})


def _name(machine: Machine, node: Any, env: Env) -> Value:
    del machine
    return env.get(node.id)


def _constant(machine: Machine, node: Any, env: Env) -> Value:
    del machine, env
    value = node.value
    if isinstance(value, str):
        return Text(value)
    if value is None:
        return NONE
    if isinstance(value, bool):
        return Truth(value=value)
    return Number(value) if isinstance(value, int | float) else UNKNOWN


def _attribute(machine: Machine, node: Any, env: Env) -> Value:
    owner = machine.evaluate(node.value, env)
    name = node.attr
    if name == "num_replicas_in_sync":
        return _REPLICAS
    if isinstance(owner, External):
        return External(canonical(f"{owner.name}.{name}"))
    if isinstance(owner, Object):
        return _member(machine, node, owner, name)
    if isinstance(owner, Class):
        return owner.member(name) or UNKNOWN
    return Method(UNKNOWN if isinstance(owner, Method) else owner, name)


_REPLICAS = Number(None, scaled=True)


def _member(machine: Machine, node: ast.AST, owner: Object, name: str) -> Value:
    if machine.in_replica and name in _WEIGHTS and isinstance(owner, Made):
        machine.trace.used.append(Used(node=node, made=owner, strategy=machine.strategy))
    found = owner.attributes.get(name)
    if found is not None:
        return found
    member = owner.cls.member(name) if owner.cls else None
    if isinstance(member, Function) and member.receiver is not None:
        return Function(member.node, member.env, owner)
    return member or Method(owner, name)


def _binary(machine: Machine, node: Any, env: Env) -> Value:
    left, right = machine.evaluate(node.left, env), machine.evaluate(node.right, env)
    if isinstance(left, Number) and isinstance(right, Number):
        return _combined(machine, node.op, left, right)
    if isinstance(left, Text) and isinstance(right, Text) and isinstance(node.op, ast.Add):
        return Text(left.value + right.value)
    if isinstance(left, Many) and isinstance(right, Many) and isinstance(node.op, ast.Add):
        return Many([*left.items, *right.items])
    if any(isinstance(value, Number) and value.scaled for value in (left, right)):
        return Number(None, scaled=True)
    return UNKNOWN


def _combined(machine: Machine, op: ast.operator, left: Number, right: Number) -> Value:
    names = left.names | right.names
    if left.scaled or right.scaled:
        if isinstance(op, ast.Mult) and left.scaled != right.scaled:
            machine.trace.scaled |= (right if left.scaled else left).names
        elif right.scaled and isinstance(op, ast.Div | ast.FloorDiv):
            machine.trace.divided |= left.names
        return Number(None, names, scaled=True)
    if left.value is None or right.value is None:
        return Number(None, names)
    return Number(_computed(op, left.value, right.value), names)


def _computed(op: ast.operator, left: float, right: float) -> float | None:
    if isinstance(op, ast.Mult):
        return left * right
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(op, ast.Sub):
        return left - right
    return None


def _boolean(machine: Machine, node: Any, env: Env) -> Value:
    values = [machine.evaluate(value, env) for value in node.values]
    result = values[0]
    for value in values[1:]:
        result = join(result, value)
    return result


def _either(machine: Machine, node: Any, env: Env) -> Value:
    machine.evaluate(node.test, env)
    return join(machine.evaluate(node.body, env), machine.evaluate(node.orelse, env))


def _compare(machine: Machine, node: Any, env: Env) -> Value:
    values = [machine.evaluate(node.left, env), *(machine.evaluate(item, env) for item in node.comparators)]
    if any(not (isinstance(value, Number) and value.value is not None) for value in values):
        for value in values:
            if isinstance(value, Number):
                machine.trace.verified |= value.names
    return UNKNOWN


def _unary(machine: Machine, node: Any, env: Env) -> Value:
    operand = machine.evaluate(node.operand, env)
    if isinstance(node.op, ast.USub) and isinstance(operand, Number) and operand.value is not None:
        return Number(-operand.value, operand.names)
    return UNKNOWN


def _many(machine: Machine, node: Any, env: Env) -> Value:
    return Many([machine.evaluate(item, env) for item in node.elts])


def _set(machine: Machine, node: Any, env: Env) -> Value:
    for item in node.elts:
        let_go(machine.evaluate(item, env))
    return UNKNOWN


def _dict(machine: Machine, node: Any, env: Env) -> Value:
    for key in node.keys:
        if key is not None:
            machine.evaluate(key, env)
    for value in node.values:
        let_go(machine.evaluate(value, env))
    return UNKNOWN


def _subscript(machine: Machine, node: Any, env: Env) -> Value:
    owner, index = machine.evaluate(node.value, env), machine.evaluate(node.slice, env)
    if isinstance(owner, Many) and isinstance(index, Number) and index.value is not None:
        position = int(index.value)
        return owner.items[position] if -len(owner.items) <= position < len(owner.items) else UNKNOWN
    return owner if isinstance(owner, Dataset) and owner.batch is None else UNKNOWN


def _slice(machine: Machine, node: Any, env: Env) -> Value:
    for part in (node.lower, node.upper, node.step):
        if part is not None:
            machine.evaluate(part, env)
    return UNKNOWN


def _lambda(machine: Machine, node: Any, env: Env) -> Value:
    return machine.define(Function(node, env.closure()))


def _inner(machine: Machine, node: Any, env: Env) -> Value:
    return machine.evaluate(node.value, env)


def _yield(machine: Machine, node: Any, env: Env) -> Value:
    if node.value is not None:
        let_go(machine.evaluate(node.value, env))
    return UNKNOWN


def _walrus(machine: Machine, node: Any, env: Env) -> Value:
    value = machine.evaluate(node.value, env)
    bind(machine, node.target, value, env.closure())
    return value


def _formatted(machine: Machine, node: Any, env: Env) -> Value:
    texts = [machine.evaluate(part, env) for part in node.values]
    if all(isinstance(text, Text) for text in texts):
        return Text("".join(text.value for text in texts if isinstance(text, Text)))
    return UNKNOWN


def _comprehension(machine: Machine, node: Any, env: Env) -> Value:
    inner = Env(env.closure() if not env.is_class else env)
    over = _generators(machine, node, inner)
    element = machine.evaluate(node.elt, inner)
    if isinstance(over, Counted) and isinstance(node, ast.ListComp) and not node.generators[0].ifs:
        return Counted(over.count, _first_text(node.elt))
    let_go(element)
    return UNKNOWN


def _generators(machine: Machine, node: Any, inner: Env) -> Value:
    first: Value | None = None
    for generator in node.generators:
        over = machine.evaluate(generator.iter, inner)
        first = over if first is None else UNKNOWN
        bind(machine, generator.target, UNKNOWN, inner)
        for condition in generator.ifs:
            machine.evaluate(condition, inner)
    return first or UNKNOWN


def _dict_comprehension(machine: Machine, node: Any, env: Env) -> Value:
    inner = Env(env.closure())
    _generators(machine, node, inner)
    machine.evaluate(node.key, inner)
    let_go(machine.evaluate(node.value, inner))
    return UNKNOWN


def _first_text(node: ast.AST) -> str:
    texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str))
    return next(texts, "")


EVALUATORS: Mapping[type, Evaluator] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.Attribute: _attribute,
    ast.Call: call,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.IfExp: _either,
    ast.Compare: _compare,
    ast.UnaryOp: _unary,
    ast.List: _many,
    ast.Tuple: _many,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Lambda: _lambda,
    ast.Starred: _inner,
    ast.Await: _inner,
    ast.FormattedValue: _inner,
    ast.Yield: _yield,
    ast.YieldFrom: _inner,
    ast.NamedExpr: _walrus,
    ast.JoinedStr: _formatted,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension,
}
"""By the class of the expression."""
