"""What an assignment does with a value."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from kdoctor_lint.flow.environment import Env
from kdoctor_lint.flow.interpreter import Machine, let_go
from kdoctor_lint.flow.joining import join
from kdoctor_lint.flow.values import UNKNOWN, Dataset, Many, Number, Object, Value


def bind(machine: Machine, target: ast.AST, value: Value, env: Env) -> None:
    """Assign a value to a name, an attribute, or several at once."""
    if isinstance(target, ast.Name):
        env.set(target.id, _named(machine, target, value))
    elif isinstance(target, ast.Attribute):
        _set_attribute(machine, target, value, env)
    elif isinstance(target, ast.Tuple | ast.List):
        for inner, item in zip(target.elts, _unpacked(value, len(target.elts)), strict=True):
            bind(machine, inner, item, env)
    elif isinstance(target, ast.Starred):
        bind(machine, target.value, UNKNOWN, env)
    elif isinstance(target, ast.Subscript):
        machine.evaluate(target.value, env)
        machine.evaluate(target.slice, env)
        let_go(value)


def _named(machine: Machine, target: ast.Name, value: Value) -> Value:
    if isinstance(value, Number):
        if value.value is not None and not value.names:
            machine.trace.counts.setdefault(target.id, target)
        return Number(value.value, value.names | {target.id}, scaled=value.scaled)
    return value


def _set_attribute(machine: Machine, target: ast.Attribute, value: Value, env: Env) -> None:
    owner = machine.evaluate(target.value, env)
    if not isinstance(owner, Object):
        let_go(value)
        return
    if isinstance(value, Number):
        value = Number(value.value, value.names | {target.attr}, scaled=value.scaled)
    before = owner.attributes.get(target.attr)
    again = before is not None and machine.conditional > 0
    owner.attributes[target.attr] = join(before, value) if before is not None and again else value


def _unpacked(value: Value, number: int) -> Sequence[Value]:
    if isinstance(value, Many) and len(value.items) == number:
        return value.items
    return [value if isinstance(value, Dataset) else UNKNOWN] * number
