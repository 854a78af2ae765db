"""What import statements bind: names of other modules, spelt out."""

from __future__ import annotations

from typing import Any

from kdoctor_lint.flow.environment import Env
from kdoctor_lint.flow.interpreter import Machine
from kdoctor_lint.flow.trace import Called
from kdoctor_lint.flow.values import External
from kdoctor_lint.names import MULTI_GPU_MODEL, canonical


def import_modules(machine: Machine, node: Any, env: Env) -> bool:
    """``import tensorflow as tf``."""
    for alias in node.names:
        _note(machine, alias.name)
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        env.set(alias.asname or name, External(canonical(name)))
    return False


def import_names(machine: Machine, node: Any, env: Env) -> bool:
    """``from tensorflow import keras``."""
    if node.level:
        # Of the same package: what stands there is not known.
        for alias in node.names:
            env.set(alias.asname or alias.name, External(f".{node.module or ''}.{alias.name}"))
        return False
    module = canonical(node.module)
    _note(machine, node.module)
    for alias in node.names:
        if alias.name == "*":
            env.stars.append(module)
            continue
        name = canonical(f"{module}.{alias.name}")
        if MULTI_GPU_MODEL.match(name):
            machine.trace.imports.append(Called(node=alias, name=name))
        env.set(alias.asname or alias.name, External(name))
    return False


def _note(machine: Machine, module: str) -> None:
    if module.partition(".")[0] == "tf_keras":
        machine.trace.legacy = True
