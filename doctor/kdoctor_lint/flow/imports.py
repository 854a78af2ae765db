"""What import statements bind: names of other modules, in full."""

from collections.abc import Mapping
from typing import Any

from kdoctor_lint.flow.environment import Env
from kdoctor_lint.flow.interpreter import Interpreter
from kdoctor_lint.flow.removals import note_import
from kdoctor_lint.flow.trace import Named, home_of
from kdoctor_lint.flow.values import External, Module, Value
from kdoctor_lint.names import Kind, canonical, kind_of


def import_modules(interpreter: Interpreter, node: Any, env: Env) -> None:
    """``import tensorflow as tf``."""
    for alias in node.names:
        _note_legacy(interpreter, alias.name)
        note_import(interpreter, alias, alias.name, canonical(alias.name))
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        members = _members(interpreter, alias, 0, name, env)
        full = canonical(name)
        env.set(alias.asname or name, External(full) if members is None else Module(full, members))


def import_names(interpreter: Interpreter, node: Any, env: Env) -> None:
    """``from tensorflow import keras``."""
    # What a relative import binds is outside the file, and must not look like an absolute name.
    module = f".{node.module or ''}" if node.level else canonical(node.module)
    if not node.level:
        _note_legacy(interpreter, node.module)
    members = _members(interpreter, node, node.level, node.module or "", env)
    for alias in node.names:
        if alias.name == "*" and members is not None:
            env.names.update(members)
            continue
        if alias.name == "*" and not node.level:
            env.stars.append(module)
            continue
        name = canonical(f"{module}.{alias.name}")
        if home_of(alias) is None:
            interpreter.trace.imports.append(Named(alias, name))
        if not node.level:
            note_import(interpreter, alias, node.module, name, node)
        value = members.get(alias.name) if members is not None else None
        inner = f"{node.module}.{alias.name}" if node.module else alias.name
        if value is None and (found := _members(interpreter, alias, node.level, inner, env)) is not None:
            value = Module(name, found)
        env.set(alias.asname or alias.name, value or External(name))


def _members(interpreter: Interpreter, node: Any, level: int, name: str, env: Env) -> Mapping[str, Value] | None:
    """What a module of the same tree defines. Only the modules that the script itself imports are followed."""
    root = canonical(name).partition(".")[0]
    if env.foreign or not name or (not level and kind_of(root) is not Kind.UNKNOWN):
        return None
    module = interpreter.neighbours(level, name)
    return None if module is None else interpreter.read_module(module, node)


def _note_legacy(interpreter: Interpreter, module: str) -> None:
    if module.partition(".")[0] == "tf_keras":
        interpreter.trace.legacy = True
