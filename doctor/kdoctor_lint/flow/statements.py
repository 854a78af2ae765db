"""What each kind of statement does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from kdoctor_lint.flow.binding import bind
from kdoctor_lint.flow.calls import synthetic
from kdoctor_lint.flow.environment import Env, Function
from kdoctor_lint.flow.imports import import_modules, import_names
from kdoctor_lint.flow.interpreter import Executor, Machine
from kdoctor_lint.flow.joining import join
from kdoctor_lint.flow.values import UNKNOWN, Class, External, Many, Place, Scope, Truth, Value
from kdoctor_lint.names import Kind, kind_of

_ASKS_WORKER = re.compile(r"chief|rank|task|worker|primary|main_process|master|coordinator", re.IGNORECASE)


def _expression(machine: Machine, node: Any, env: Env) -> bool:
    machine.evaluate(node.value, env)
    return False


def _assign(machine: Machine, node: Any, env: Env) -> bool:
    value = machine.evaluate(node.value, env)
    for target in node.targets:
        bind(machine, target, value, env)
    return False


def _annotated(machine: Machine, node: Any, env: Env) -> bool:
    if node.value is not None:
        bind(machine, node.target, machine.evaluate(node.value, env), env)
    return False


def _augmented(machine: Machine, node: Any, env: Env) -> bool:
    target = node.target
    if isinstance(target, ast.Name):
        left = ast.copy_location(ast.Name(id=target.id, ctx=ast.Load()), target)
        combined = ast.copy_location(ast.BinOp(left=left, op=node.op, right=node.value), node)
        env.set(target.id, machine.evaluate(combined, env))
    else:
        machine.evaluate(node.value, env)
        bind(machine, target, UNKNOWN, env)
    return False


def _if(machine: Machine, node: Any, env: Env) -> bool:
    test = machine.evaluate(node.test, env)
    if isinstance(test, Truth):
        return machine.execute(node.body if test.value else node.orelse, env)
    asks = _asks_worker(machine, node.test)
    machine.chief_only += asks
    ended = _branches(machine, [node.body, node.orelse], env)
    # `if not is_chief: return`: what follows is for the chief, too. A function's end undoes it.
    if not (asks and _leaves(node.body)):
        machine.chief_only -= asks
    return ended


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return | ast.Raise | ast.Continue)


def _asks_worker(machine: Machine, test: ast.AST) -> bool:
    if not machine.trace.several_replicas:
        return False
    return any(_ASKS_WORKER.search(word) for node in ast.walk(test) for word in _words(node))


def _words(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _branches(machine: Machine, bodies: Sequence[Sequence[ast.stmt]], env: Env) -> bool:
    """Each on its own from here; then what holds whichever was taken. True if none of them goes on."""
    before = env.names
    machine.conditional += 1
    outcomes = []
    for body in bodies:
        env.names = dict(before)
        if not machine.execute(body, env):
            outcomes.append(env.names)
    machine.conditional -= 1
    env.names = _merged(before, outcomes)
    return not outcomes


def _merged(before: dict[str, Value], outcomes: Sequence[dict[str, Value]]) -> dict[str, Value]:
    if not outcomes:
        return before
    first, *others = outcomes
    for other in others:
        for name, value in other.items():
            mine = first.get(name)
            if mine is None:
                first[name] = value
            elif mine is not value:
                first[name] = join(mine, value)
    return first


def _loop(machine: Machine, node: Any, env: Env) -> bool:
    machine.evaluate(node.test, env)
    _branches(machine, [node.body, []], env)
    return machine.execute(node.orelse, env)


def _for(machine: Machine, node: Any, env: Env) -> bool:
    over = machine.evaluate(node.iter, env)
    bind(machine, node.target, _element(over), env)
    _branches(machine, [node.body, []], env)
    return machine.execute(node.orelse, env)


def _element(over: Value) -> Value:
    if isinstance(over, Many) and over.items:
        element = over.items[0]
        for item in over.items[1:]:
            element = join(element, item)
        return element
    return UNKNOWN


def _try(machine: Machine, node: Any, env: Env) -> bool:
    bodies = [[*node.body, *node.orelse], *(handler.body for handler in node.handlers)]
    ended = _branches(machine, bodies, env)
    return machine.execute(node.finalbody, env) or ended


def _with(machine: Machine, node: Any, env: Env) -> bool:
    with ExitStack() as stack:
        for item in node.items:
            manager = machine.evaluate(item.context_expr, env)
            if item.optional_vars is not None:
                bind(machine, item.optional_vars, UNKNOWN if isinstance(manager, Scope) else manager, env)
            if isinstance(manager, Scope) and manager.certain and manager.strategy is not None:
                stack.enter_context(machine.scoped(Place.INSIDE, manager.strategy))
            elif machine.place is Place.OUTSIDE and not _harmless(item.context_expr, manager, env):
                machine.trace.unclear = True
                stack.enter_context(machine.scoped(Place.UNSURE, None))
        return machine.execute(node.body, env)


def _harmless(node: ast.expr, manager: Value, env: Env) -> bool:
    """Whether a context manager surely enters no scope: it is of a module that is known to have none."""
    if isinstance(manager, Scope):
        return False
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name):
        return False
    root = env.get(node.id)
    if isinstance(root, External):
        return kind_of(root.name) is not Kind.UNKNOWN and not root.name.startswith("contextlib.ExitStack")
    # A strategy has no other context manager than its scope; nor do models and tensors have one.
    return False


def _define(machine: Machine, node: Any, env: Env) -> bool:
    for decorator in node.decorator_list:
        machine.evaluate(decorator, env)
    env.set(node.name, machine.define(Function(node, env.closure())))
    return False


def _class(machine: Machine, node: Any, env: Env) -> bool:
    bases = [machine.evaluate(base, env) for base in node.bases]
    inner = Env(env, is_class=True)
    machine.execute(node.body, inner)
    cls = Class(node, bases, inner.names)
    env.set(node.name, cls)
    instance = machine.self_of(cls, lambda: synthetic(cls))
    for member in inner.names.values():
        if isinstance(member, Function) and member.receiver is None and not _is_static(member.node):
            member.receiver = instance
    return False


def _is_static(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(isinstance(item, ast.Name) and item.id in {"staticmethod", "classmethod"} for item in decorators)


def _return(machine: Machine, node: Any, env: Env) -> bool:
    machine.give_back(UNKNOWN if node.value is None else machine.evaluate(node.value, env))
    return True


def _raise(machine: Machine, node: Any, env: Env) -> bool:
    if node.exc is not None:
        machine.evaluate(node.exc, env)
    return True


def _leave(machine: Machine, node: Any, env: Env) -> bool:
    del machine, node, env
    return True


def _assert(machine: Machine, node: Any, env: Env) -> bool:
    machine.evaluate(node.test, env)
    return False


def _global(machine: Machine, node: Any, env: Env) -> bool:
    del machine
    env.declare_outer(node.names, to_module=True)
    return False


def _nonlocal(machine: Machine, node: Any, env: Env) -> bool:
    del machine
    env.declare_outer(node.names, to_module=False)
    return False


def _match(machine: Machine, node: Any, env: Env) -> bool:
    machine.evaluate(node.subject, env)
    return _branches(machine, [*(case.body for case in node.cases), []], env)


EXECUTORS: Mapping[type, Executor] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.If: _if,
    ast.While: _loop,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.Try: _try,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.FunctionDef: _define,
    ast.AsyncFunctionDef: _define,
    ast.ClassDef: _class,
    ast.Import: import_modules,
    ast.ImportFrom: import_names,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _leave,
    ast.Continue: _leave,
    ast.Assert: _assert,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.Match: _match,
    **({vars(ast)["TryStar"]: _try} if "TryStar" in vars(ast) else {}),  # Python 3.11 and newer
}
"""By the class of the statement. Those that are missing do nothing that a rule asks for."""
