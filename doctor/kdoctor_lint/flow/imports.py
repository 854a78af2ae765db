"""What import statements bind: names of other modules, in full."""

from __future__ import annotations

from typing import Any

from kdoctor_lint.flow.environment import Env
from kdoctor_lint.flow.interpreter import Interpreter
from kdoctor_lint.flow.removals import note_import
from kdoctor_lint.flow.trace import Named
from kdoctor_lint.flow.values import External
from kdoctor_lint.names import canonical


def import_modules(interpreter: Interpreter, node: Any, env: Env) -> None:
    """``import tensorflow as tf``."""
    for alias in node.names:
        _note_legacy(interpreter, alias.name)
        note_import(interpreter, alias, alias.name, canonical(alias.name))
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        env.set(alias.asname or name, External(canonical(name)))


def import_names(interpreter: Interpreter, node: Any, env: Env) -> None:
    """``from tensorflow import keras``."""
    # What a relative import binds is outside the file, and must not look like an absolute name.
    module = f".{node.module or ''}" if node.level else canonical(node.module)
    if not node.level:
        _note_legacy(interpreter, node.module)
    for alias in node.names:
        if alias.name == "*" and not node.level:
            env.stars.append(module)
            continue
        name = canonical(f"{module}.{alias.name}")
        interpreter.trace.imports.append(Named(alias, name))
        if not node.level:
            note_import(interpreter, alias, node.module, name, node)
        env.set(alias.asname or alias.name, External(name))


def _note_legacy(interpreter: Interpreter, module: str) -> None:
    if module.partition(".")[0] == "tf_keras":
        interpreter.trace.legacy = True
