"""What each kind of statement does, and whether code after it is unreachable."""

import ast
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial, reduce
from typing import Any

from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.binding import bind
from kdoctor_lint.flow.calls import unseen_instance
from kdoctor_lint.flow.environment import Env, Function
from kdoctor_lint.flow.expressions import taken_branch
from kdoctor_lint.flow.interpreter import Executor, Interpreter
from kdoctor_lint.flow.joining import join
from kdoctor_lint.flow.removals import note_import
from kdoctor_lint.flow.trace import Named, home_of
from kdoctor_lint.flow.values import UNKNOWN, Value
from kdoctor_lint.names import DEFAULT, GRAPH, Kind, canonical, kind_of


def import_modules(interpreter: Interpreter, node: Any, env: Env) -> None:
    """``import tensorflow as tf``."""
    for alias in node.names:
        _note_legacy(interpreter, alias.name)
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        members = _members(interpreter, alias, 0, name, env)
        if members is None:
            note_import(interpreter, alias, alias.name, canonical(alias.name))
        value = val.External(canonical(name)) if members is None else val.Module(f".{name}", members)
        env.set(alias.asname or name, value)


def import_names(interpreter: Interpreter, node: Any, env: Env) -> None:
    """``from tensorflow import keras``."""
    members = _members(interpreter, node, node.level, node.module or "", env)
    # What is in the tree must not look like a name of a package.
    near = bool(node.level) or members is not None
    module = f".{node.module or ''}" if near else canonical(node.module)
    for alias in node.names:
        if alias.name == "*" and members is not None:
            env.names.update(members)
            continue
        if alias.name == "*":
            env.stars.append(module)
            continue
        name = canonical(f"{module}.{alias.name}")
        if home_of(alias) is None:
            interpreter.trace.imports.append(Named(alias, name))
        if not near:
            _note_legacy(interpreter, f"{node.module}.{alias.name}")
            note_import(interpreter, alias, node.module, name)
        value = members.get(alias.name) if members is not None else None
        inner = f"{node.module}.{alias.name}" if node.module else alias.name
        if value is None and (found := _members(interpreter, alias, node.level, inner, env)) is not None:
            value = val.Module(name, found)
        env.set(alias.asname or alias.name, value or val.External(name))


def _members(interpreter: Interpreter, node: Any, level: int, name: str, env: Env) -> Mapping[str, Value] | None:
    """What a module of the same tree defines."""
    root = name.partition(".")[0]
    if root in interpreter.replaced and not level:
        return {}
    find = partial(interpreter.neighbours, importer=env.home)
    if not name:
        return None
    if not level and kind_of(canonical(root)) is not Kind.UNKNOWN:
        # A file next to the script comes before an installed package, unless the script is in a package itself.
        if find(1, "__init__") is not None or find(1, root) is None:
            return None
        level = 1
    module = find(level, name)
    return None if module is None else interpreter.read_module(module, node)


def _note_legacy(interpreter: Interpreter, module: str) -> None:
    if _KERAS_2.match(module):
        interpreter.trace.legacy = True


_KERAS_2 = re.compile(r"tf_keras\b|tensorflow\.python\.keras(\.(engine|layers|models|Model|Sequential)\b|$)")
_WORKER = re.compile(r"chief|rank|task|worker|primary|main_process|master|coordinator", re.IGNORECASE)
_MISSING = re.compile(r"\b(Base)?Exception\b|Attribute|Import|ModuleNotFound|Name|Type|Value|\bAssertion")
_VERSION = re.compile(
    r"version|hasattr|executing_eagerly|(tf|tensorflow|keras)_?\d|(?<![a-z])(v[12]|ver)(?![a-z\d])|^\d+\.\d+(\.\d+)?$",
    re.IGNORECASE,
)


def _evaluate(interpreter: Interpreter, node: Any, env: Env) -> bool:
    before = set(interpreter.exchanged)
    values = interpreter.evaluate_all(ast.iter_child_nodes(node), env)
    interpreter.exchanged -= set(values) - before  # nothing gets the result
    return isinstance(node, ast.Raise)


def _assign(interpreter: Interpreter, node: Any, env: Env) -> None:
    value = interpreter.evaluate(node.value, env)
    for target in node.targets:
        bind(interpreter, target, value, env)


def _annotated(interpreter: Interpreter, node: Any, env: Env) -> None:
    if node.value:
        bind(interpreter, node.target, interpreter.evaluate(node.value, env), env)


def _augmented(interpreter: Interpreter, node: Any, env: Env) -> None:
    target = node.target
    if isinstance(target, ast.Name):
        env.set(target.id, interpreter.evaluate(ast.BinOp(target, node.op, node.value), env))
    else:
        interpreter.evaluate(node.value, env)
        bind(interpreter, target, UNKNOWN, env)


def _if(interpreter: Interpreter, node: Any, env: Env) -> bool:
    test = interpreter.evaluate(node.test, env)
    # Where there is code for the import, too, either runs.
    main = not node.orelse and isinstance(node.test, ast.Compare) and ast.unparse(node.test.left) == "__name__"
    known = env.home is None if main and isinstance(node.test.ops[0], ast.Eq) else val.truth_of(test)
    if known is not None:
        left_out = (part for statement in (node.orelse if known else node.body) for part in ast.walk(statement))
        interpreter.trace.unclear |= any(isinstance(part, ast.Attribute) and part.attr == "scope" for part in left_out)
        return interpreter.execute(node.body if known else node.orelse, env)
    # Not being a parameter server is what all workers have in common.
    asks = _names_any(node.test, _WORKER) and not ast.unparse(node.test).endswith("!= 'ps'")
    interpreter.chief_only += asks
    tests_version = _names_any(node.test, _VERSION)
    interpreter.guarded += tests_version
    ended = _branches(interpreter, [node.body, node.orelse], env, taken=taken_branch(interpreter, node.test, env))
    interpreter.guarded -= tests_version
    # After `if not is_chief: return`, the code is for the chief only. The end of the function resets this.
    if not (asks and isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue)):
        interpreter.chief_only -= asks
    return ended


def _names_any(test: ast.AST, pattern: re.Pattern[str]) -> bool:
    """Whether a condition has such a name, as a variable, an attribute or a string."""
    nodes = ast.walk(test)
    words = (getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "value", None) for node in nodes)
    return any(isinstance(word, str) and pattern.search(word) for word in words)


def _branches(
    interpreter: Interpreter, bodies: Sequence[Sequence[ast.stmt]], env: Env, taken: int | None = None
) -> bool:
    """Execute alternatives and join their results, or take that of the one that is taken. True if none continues."""
    before, path = env.names, interpreter.path
    interpreter.conditional += 1
    outcomes = []
    for number, body in enumerate(bodies):
        env.names = dict(before)
        interpreter.path = path if taken == number else (*path, id(body))
        left_out = taken not in {None, number}
        interpreter.left_out, interpreter.idle = interpreter.left_out + left_out, interpreter.idle + left_out
        if not interpreter.execute(body, env) and not left_out:
            outcomes.append(env.names)
        interpreter.left_out, interpreter.idle = interpreter.left_out - left_out, interpreter.idle - left_out
        env.keep_branch(before)
    interpreter.conditional -= 1
    interpreter.path = path
    joined, *others = outcomes or [before]
    for other in others:
        for name, value in other.items():
            joined[name] = join(joined.get(name, value), value)
    env.names = joined
    return not outcomes


def _loop(interpreter: Interpreter, node: Any, env: Env) -> bool:
    interpreter.evaluate(node.test, env)
    return _repeat(interpreter, node, env)


def _repeat(interpreter: Interpreter, node: Any, env: Env) -> bool:
    before, interpreter.loop = interpreter.loop, node
    _branches(interpreter, [node.body, []], env)
    interpreter.loop = before
    return interpreter.execute(node.orelse, env)


_FEW = 4  # The most items of a loop that are followed in sequence


def _for(interpreter: Interpreter, node: Any, env: Env) -> bool:
    over = interpreter.evaluate(node.iter, env)
    element = reduce(join, over.items) if isinstance(over, val.Many) and over.items else UNKNOWN
    if isinstance(over, val.Batches | val.Dataset):
        counted = isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "enumerate"
        batch = val.Batch(interpreter.site or node.iter)
        element = val.Many([UNKNOWN, batch]) if counted else batch
    few = isinstance(over, val.Many) and over.whole and 0 < len(over.items) <= _FEW
    for item in over.items if isinstance(over, val.Many) and few else [element]:
        bind(interpreter, node.target, item, env)
        ended = _repeat(interpreter, node, env)
    return ended


def _try(interpreter: Interpreter, node: Any, env: Env) -> bool:
    bodies = [[*node.body, *node.orelse], *(_binding(handler, handler.body) for handler in node.handlers)]
    catches = any(map(_catches_missing, node.handlers))
    interpreter.catching += catches
    ended = _branches(interpreter, bodies, env)
    interpreter.catching -= catches
    return interpreter.execute(node.finalbody, env) or ended


def _binding(pattern: ast.AST, body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements after the names of an exception or a pattern are bound to something unknown."""
    nodes = [pattern] if isinstance(pattern, ast.ExceptHandler) else ast.walk(pattern)
    names = (getattr(node, "name", None) or getattr(node, "rest", None) for node in nodes)
    return [*(ast.Assign([ast.Name(name)], ast.Constant(...)) for name in names if name), *body]


def _catches_missing(handler: ast.ExceptHandler) -> bool:
    caught = ast.unparse(handler.type) if handler.type else "Exception"
    return bool(_MISSING.search(caught))


def _with(interpreter: Interpreter, node: Any, env: Env) -> bool:
    with ExitStack() as stack:
        for item in node.items:
            manager = interpreter.evaluate(item.context_expr, env)
            if item.optional_vars is not None:
                bind(interpreter, item.optional_vars, UNKNOWN if isinstance(manager, val.Scope) else manager, env)
            strategy = manager.strategy if isinstance(manager, val.Scope) and manager.certain else None
            if strategy is not None and strategy.kinds == DEFAULT:
                interpreter.trace.unclear = True  # It changes nothing here, and perhaps on purpose.
                continue
            if strategy is not None:
                interpreter.entered.append(strategy)
                stack.enter_context(interpreter.scoped(val.Place.INSIDE, strategy))
            elif interpreter.place is val.Place.OUTSIDE and not _enters_no_scope(item.context_expr, manager, env):
                interpreter.trace.unclear = True
                stack.enter_context(interpreter.scoped(val.Place.UNSURE, None))
        return interpreter.execute(node.body, env)


def _enters_no_scope(node: ast.expr, manager: Value, env: Env) -> bool:
    """Whether a context manager is from a module that is known to have no scopes."""
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    root = env.get(node.id) if isinstance(node, ast.Name) else UNKNOWN
    if isinstance(manager, val.Scope) or not isinstance(root, val.External):
        return False
    return kind_of(root.name) is not Kind.UNKNOWN and not root.name.startswith("contextlib.ExitStack")


def _define(interpreter: Interpreter, node: Any, env: Env) -> None:
    heads = [item.func if isinstance(item, ast.Call) else item for item in node.decorator_list]
    makers = [value for value in interpreter.evaluate_all(heads, env) if not isinstance(value, Function)]
    names = [value.name if isinstance(value, val.External) else "" for value in makers]
    if GRAPH in names:
        interpreter.graphs.add(id(node))
    if any(kind_of(name) is Kind.UNKNOWN for name in names):
        interpreter.decorated.add(id(node))
    function = interpreter.define(Function(node, env.closure()))
    if function.decorators & {"setter", "deleter"}:
        return  # the name stays the property
    value: Value = function
    for decorator in reversed(interpreter.evaluate_all(node.decorator_list, env)):
        made = interpreter.follow(decorator, [value], {}) if isinstance(decorator, Function) else UNKNOWN
        value = made if isinstance(made, Function) else value
    env.set(node.name, value)


def _class(interpreter: Interpreter, node: Any, env: Env) -> None:
    bases = interpreter.evaluate_all(node.bases, env)
    heads = [item.func if isinstance(item, ast.Call) else item for item in node.decorator_list]
    added = interpreter.evaluate_all([*heads, *(item.value for item in node.keywords)], env)
    bases += [UNKNOWN for value in added if not isinstance(value, val.External) or kind_of(value.name) is Kind.UNKNOWN]
    inner = Env(env, is_class=True)
    interpreter.execute(node.body, inner)
    cls = val.Class(node, bases, inner.names)
    env.set(node.name, cls)
    instance = interpreter.receivers.setdefault(id(node), unseen_instance(cls))
    for member in [value for value in inner.names.values() if isinstance(value, Function)]:
        if member.receiver is None and not member.decorators & {"staticmethod", "classmethod"}:
            member.receiver, member.cls = instance, cls


def _return(interpreter: Interpreter, node: Any, env: Env) -> bool:
    interpreter.give_back(UNKNOWN if node.value is None else interpreter.evaluate(node.value, env))
    return True


def _global(_: Interpreter, node: Any, env: Env) -> None:
    env.declare_outer(node.names, env.module())


def _nonlocal(_: Interpreter, node: Any, env: Env) -> None:
    env.declare_outer(node.names, env.parent or env)


def _match(interpreter: Interpreter, node: Any, env: Env) -> bool:
    interpreter.evaluate(node.subject, env)
    return _branches(interpreter, [*(_binding(case.pattern, case.body) for case in node.cases), []], env)


EXECUTORS: Mapping[type, Executor] = {
    **dict.fromkeys((ast.Expr, ast.Raise, ast.Assert), _evaluate),
    **dict.fromkeys((ast.For, ast.AsyncFor), _for),
    **dict.fromkeys((ast.With, ast.AsyncWith), _with),
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef), _define),
    **dict.fromkeys((ast.Break, ast.Continue), lambda *_: True),
    **dict.fromkeys((ast.Try, *([vars(ast)["TryStar"]] if "TryStar" in vars(ast) else [])), _try),  # Python 3.11
    ast.Assign: _assign, ast.AnnAssign: _annotated, ast.AugAssign: _augmented, ast.If: _if, ast.While: _loop,
    ast.ClassDef: _class, ast.Import: import_modules, ast.ImportFrom: import_names, ast.Return: _return,
    ast.Global: _global, ast.Nonlocal: _nonlocal, ast.Match: _match,
}  # fmt: skip
"""By the class of the statement. Others have no effect on any rule."""
