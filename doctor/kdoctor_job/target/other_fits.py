"""Which other calls of ``fit`` a script has, read from its text."""

from __future__ import annotations

import ast
from typing import Iterator, List, Tuple

_OF_KERAS = {"batch_size", "callbacks", "epochs", "steps_per_epoch", "validation_data", "validation_split"}
"""Arguments of the ``fit`` of Keras, which the fit of no other library has."""


def other_fits(source: bytes, line: int) -> List[int]:
    """The lines of the calls of ``fit`` that trains Keras models, other than the one in this line.

    A call counts if it is of the same object, or has arguments of Keras. The other side of an ``if`` does not.

    Args:
        source: the text of a Python file.
        line: of a call of ``fit``, or any line of it, from 1.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    calls = list(_fits(tree))
    trained = {model for call, model in calls if _has(call, line)}
    not_taken = {call for node in ast.walk(tree) for call, _ in _not_taken(node, line)}
    return sorted(
        {
            call.lineno
            for call, model in calls
            if not _has(call, line)
            and call not in not_taken
            and (model in trained or _OF_KERAS & {word.arg for word in call.keywords})
        }
    )


def _fits(*nodes: ast.AST) -> Iterator[Tuple[ast.Call, str]]:
    """The calls of ``fit``, each with what it is called of."""
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "fit":
                yield part, ast.dump(part.func.value)


def _not_taken(node: ast.AST, line: int) -> Iterator[Tuple[ast.Call, str]]:
    """The calls on the side of an ``if`` that is not taken if this line is executed."""
    if isinstance(node, ast.If):
        for side, other in ((node.body, node.orelse), (node.orelse, node.body)):
            if any(_has(statement, line) for statement in side):
                yield from _fits(*other)


def _has(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)
