"""What an assignment does with a value."""

import ast
from collections.abc import Sequence

from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.environment import Env
from kdoctor_lint.flow.interpreter import Interpreter
from kdoctor_lint.flow.joining import join
from kdoctor_lint.flow.removals import note_attribute
from kdoctor_lint.flow.trace import Late, home_of
from kdoctor_lint.flow.values import UNKNOWN, Value
from kdoctor_lint.names import ALONE, SEVERAL_REPLICAS, WORKERS

_READERS = {
    "TF_CONFIG": WORKERS | {ALONE, "ParameterServerStrategy"},
    "CUDA_VISIBLE_DEVICES": SEVERAL_REPLICAS,
    "TF_FORCE_GPU_ALLOW_GROWTH": SEVERAL_REPLICAS,
}
"""Environment variables that a strategy reads, or TensorFlow before it, and the strategies."""


def bind(interpreter: Interpreter, target: ast.AST, value: Value, env: Env) -> None:
    """Assign a value to a name, an attribute, or several at once."""
    if isinstance(target, ast.Name):
        if isinstance(value, val.Number) and value.value is not None and not value.names:
            interpreter.trace.counts.setdefault(target.id, target)
        env.set(target.id, val.named(value, target.id))
    elif isinstance(target, ast.Attribute):
        _set_attribute(interpreter, target, value, env)
    elif isinstance(target, ast.Tuple | ast.List):
        items: Sequence[Value] = [
            value
            if isinstance(value, val.Dataset | val.Batch | val.Gradients | val.Strategy | val.Foreign)
            else UNKNOWN
        ] * len(target.elts)
        if isinstance(value, val.Many) and value.whole and len(value.items) == len(target.elts):
            items = value.items
        for inner, item in zip(target.elts, items, strict=True):
            bind(interpreter, inner, item, env)
    elif isinstance(target, ast.Starred):
        bind(interpreter, target.value, UNKNOWN, env)
    elif isinstance(target, ast.Subscript):
        _set_item(interpreter, target, value, env)


def _set_item(interpreter: Interpreter, target: ast.Subscript, value: Value, env: Env) -> None:
    owner, key = interpreter.evaluate_all([target.value, target.slice], env)
    if isinstance(owner, val.Many):
        owner.items, owner.whole = [*owner.items, value], False
    if isinstance(owner, val.Table):
        if isinstance(key, val.Text):
            before = owner.items.get(key.value, value) if interpreter.conditional else value
            owner.items[key.value] = join(before, value)
        else:
            owner.forget()
    if isinstance(owner, val.Flags) and isinstance(key, val.Text):
        interpreter.options[key.value] = UNKNOWN if interpreter.conditional else value
    if isinstance(owner, val.External) and isinstance(key, val.Text):
        if owner.name == "os.environ":
            note_variable(interpreter, target, key.value, value)
        elif owner.name == "sys.modules":
            interpreter.replaced.add(key.value)


def note_variable(interpreter: Interpreter, node: ast.AST, name: str, value: Value) -> None:
    """An environment variable is set."""
    trace = interpreter.trace
    kinds = _READERS.get(name)
    if kinds is not None and name not in trace.environment and interpreter.after(kinds) and not interpreter.guarded:
        trace.late.append(Late(node, name, len(interpreter.entered)))
    trace.environment[name] = UNKNOWN if interpreter.conditional else value
    if home_of(node) is None:
        trace.variables.append((node, name, value))


def _set_attribute(interpreter: Interpreter, target: ast.Attribute, value: Value, env: Env) -> None:
    owner = interpreter.evaluate(target.value, env)
    note_attribute(interpreter, target, owner, env)
    if target.attr == "trainable" and not (isinstance(value, val.Truth) and value.value):
        interpreter.trace.freezes = True
    match owner:
        case val.Method(receiver=val.Object() as options, name="experimental_distribute"):
            options.attributes[target.attr] = value
    if isinstance(owner, val.Flags) or (isinstance(owner, val.External) and owner.name.endswith("flags.FLAGS")):
        interpreter.options[target.attr] = UNKNOWN if interpreter.conditional else value
    if not isinstance(owner, val.Object):
        return
    value = val.named(value, target.attr)
    unseen = interpreter.receivers.get(id(owner.cls.node)) if owner.cls is not None else None
    if unseen is not None and unseen is not owner and target.attr in unseen.attributes:
        unseen.attributes[target.attr] = join(unseen.attributes[target.attr], value)
    before = owner.attributes.get(target.attr)
    owner.attributes[target.attr] = join(before, value) if before is not None and interpreter.conditional else value
