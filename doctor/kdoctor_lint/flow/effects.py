"""What several kinds of calls do to the state of things."""

from __future__ import annotations

import ast
from typing import Any

from kdoctor_lint.flow.arguments import Arguments
from kdoctor_lint.flow.interpreter import Machine
from kdoctor_lint.flow.trace import Saved, Used
from kdoctor_lint.flow.values import UNKNOWN, Model, Place, Text, Value


def unknown(machine: Machine, node: ast.Call, callee: Any, given: Arguments) -> Value:
    """Code that this file does not show: it might do anything with what it gets, and make models where it stands."""
    del node, callee
    given.let_go()
    if machine.place is not Place.OUTSIDE:
        machine.trace.unclear = True
    return UNKNOWN


def built_on(machine: Machine, parts: Any) -> None:
    """Models that become part of one that is made here."""
    for part in parts:
        if isinstance(part, Model) and part.place is Place.OUTSIDE and machine.place is Place.INSIDE:
            machine.trace.used.append(Used(node=part.node, made=part, strategy=machine.strategy))


def saved(machine: Machine, node: ast.AST, path: Value | None, what: str) -> None:
    """Something is saved to a path that stands in the script, unless only one worker comes here."""
    if isinstance(path, Text) and not machine.chief_only:
        machine.trace.saved.append(Saved(node=node, what=what, path=path.value, strategy=machine.strategy))
