"""Moves statements into the scope of a new strategy."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from kdoctor_lint.edits import Scope


def into_scope(module: cst.Module, edit: Scope) -> cst.Module:
    """The module with the statements of the edit in ``with strategy.scope():``."""
    body = module.body
    first, last = edit.first, edit.last
    if not 0 <= first <= last < len(body):
        return module
    moved = [item for item in body[first : last + 1] if isinstance(item, cst.SimpleStatementLine)]
    if len(moved) != last + 1 - first:
        return module
    made = f"{edit.strategy} = {edit.tensorflow}.distribute.MirroredStrategy()"
    strategy = cst.ensure_type(cst.parse_statement(made), cst.SimpleStatementLine)
    strategy = strategy.with_changes(leading_lines=moved[0].leading_lines)
    inside: Sequence[cst.BaseStatement] = [moved[0].with_changes(leading_lines=()), *moved[1:]]
    scope = cst.With([cst.WithItem(cst.parse_expression(f"{edit.strategy}.scope()"))], cst.IndentedBlock(inside))
    return module.with_changes(body=[*body[:first], strategy, scope, *body[last + 1 :]])
