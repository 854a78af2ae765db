"""When the statements around ``multi_gpu_model`` can be moved into the scope of a strategy."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from kdoctor_lint.edits import Scope

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
_STRATEGY = "strategy"


def scope_edit(body: Sequence[ast.stmt], call: ast.AST) -> Scope | None:
    """The edit, if the script makes, copies and compiles the model in plain statements of its main part."""
    copied = next((number for number, item in enumerate(body) if getattr(item, "value", None) is call), None)
    if copied is None or not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Name):
        return None
    model, parallel = call.args[0].id, _target(body[copied])
    first = next((number for number, item in enumerate(body[:copied]) if _target(item) == model), None)
    compiled = [number for number, item in enumerate(body) if _compiles(item, {model, parallel})]
    if first is None or not parallel or not compiled or compiled[0] < copied:
        return None
    last = compiled[-1]
    tensorflow = next((name for item in body[:first] for name in _tensorflow(item)), None)
    names = {node.id for item in body for node in ast.walk(item) if isinstance(node, ast.Name)}
    plain = all(isinstance(item, _SIMPLE) for item in body[first : last + 1])
    one_a_line = len({item.lineno for item in body}) == len(body)
    if tensorflow is None or _STRATEGY in names or not plain or not one_a_line:
        return None
    return Scope(first, last, _STRATEGY, tensorflow)


def _target(item: ast.stmt) -> str:
    if isinstance(item, ast.Assign) and len(item.targets) == 1 and isinstance(item.targets[0], ast.Name):
        return item.targets[0].id
    return ""


def _compiles(item: ast.stmt, names: set[str]) -> bool:
    called = item.value.func if isinstance(item, ast.Expr) and isinstance(item.value, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr != "compile":
        return False
    return isinstance(called.value, ast.Name) and called.value.id in names


def _tensorflow(item: ast.stmt) -> list[str]:
    if not isinstance(item, ast.Import):
        return []
    return [alias.asname or alias.name for alias in item.names if alias.name == "tensorflow"]
