"""What a script does after ``fit``, which does not return here, as far as its text shows it.

Calls that save the model are tried with a small one.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from kdoctor_job.target.parts import describe, is_model, keras_of

_METHODS = ("save", "save_weights")
_MAY_NOT_RUN = (ast.If, ast.Try, ast.Match) if hasattr(ast, "Match") else (ast.If, ast.Try)
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def first_save(model: Any, source: str, line: int, values: Mapping[str, Any]) -> Optional[Tuple[str, int]]:
    """Why a call after ``fit`` will not save the model (empty if it will), and its line; None if that is not known.

    A call counts if it certainly runs, is of the model itself, and says in the script how its path ends.

    Args:
        model: that ``fit`` trains; None for any model.
        source: the text of the script.
        line: of the call of ``fit``, from 1.
        values: what names mean there.
    """
    tried = None
    for statement in _after(_statements(source), line):
        for call in ast.walk(statement):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
                ending = _ending(call.args[0], values) if len(call.args) == 1 else ""
                found = _value(call.func.value, values)
                if ending and (is_model(found) if model is None else found is model):
                    why = _why(found, call.func.attr, ending, call.keywords)
                    if why:
                        return f"{ast.unparse(call)} will raise after the training: {why}", call.lineno
                    tried = tried if why is None else ("", call.lineno)
    return tried


def save_after_loop() -> Optional[Dict[str, Any]]:
    """The save that follows the loop of the script that this thread runs, as facts of ``JobSave``."""
    name = str(getattr(sys.modules["__main__"], "__file__", ""))
    frame = next((frame for frame, _ in traceback.walk_stack(None) if frame.f_code.co_filename == name), None)
    if frame is None:
        return None
    values = {**frame.f_globals, **frame.f_locals}
    found = first_save(None, "".join(linecache.getlines(name)), frame.f_lineno, values)
    return found and {"place": f"{Path(name).name}:{found[1]}", "error": found[0]}


def numbers_of_history(source: str, line: int) -> List[str]:
    """The names in ``history.history["acc"]`` behind ``history = model.fit(...)`` in that line, if that runs."""
    body = _statements(source)
    nodes = (node for statement in body for node in ast.walk(statement))
    assigned = [node for node in nodes if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    names = {ast.unparse(one) for node in assigned if _has(node, line) for one in node.targets}
    later = [node for statement in _after(body, line) for node in ast.walk(statement)]
    of_fit = {f"{name}.history" for name in names}
    read = [node.slice for node in later if isinstance(node, ast.Subscript) and ast.unparse(node.value) in of_fit]
    return sorted({str(name.value) for name in read if isinstance(name, ast.Constant)})


def _statements(source: str) -> List[ast.stmt]:
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError):
        return []


def _has(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _after(statements: Sequence[ast.stmt], line: int) -> Iterator[ast.stmt]:
    """The statements that run once the one in this line has ended."""
    for statement in statements:
        blocks: List[List[ast.stmt]] = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        around = [block for block in blocks if any(_has(one, line) for one in block)]
        if around:
            yield from _after(around[0], line)
        elif statement.lineno > line and not isinstance(statement, (*_MAY_NOT_RUN, *_LATER)):
            if any(blocks):
                yield from (one for block in blocks for one in _after(block, line))
            else:
                yield statement


def _value(node: ast.AST, values: Mapping[str, Any]) -> Any:
    """What a name or an attribute means where ``fit`` is called; None if that is not known."""
    if isinstance(node, ast.Name):
        return values.get(node.id)
    return getattr(_value(node.value, values), node.attr, None) if isinstance(node, ast.Attribute) else None


def _ending(node: ast.AST, values: Mapping[str, Any]) -> str:
    """The last part of a path; empty if it is not known."""
    if isinstance(node, ast.JoinedStr):
        node = node.values[-1] if node.values else node
    elif isinstance(node, ast.BinOp):
        return _ending(node.right, values)
    elif isinstance(node, ast.Call):
        return _ending(node.args[-1], values) if node.args else ""
    found = node.value if isinstance(node, ast.Constant) else _value(node, values)
    return Path(found).name if isinstance(found, (str, os.PathLike)) else ""


def _why(model: Any, method: str, ending: str, keywords: Sequence[ast.keyword]) -> Optional[str]:
    """The error of that call; empty if it has none, and None if it cannot be tried."""
    keras = keras_of(model)
    if getattr(type(model), method) is not getattr(keras.Model, method):
        return None  # its own class decides
    try:
        given = {str(word.arg): ast.literal_eval(word.value) for word in keywords}
    except ValueError:
        return None
    with tempfile.TemporaryDirectory(prefix="kdoctor-job-") as folder:
        small = keras.Sequential([keras.Input((1,)), keras.layers.Flatten()])
        try:
            getattr(small, method)(str(Path(folder, ending)), **given)
        except Exception as error:
            return describe(error, folder=folder)
    return (why_not_serialized(model) or "") if ending.endswith(".keras") else ""


def why_not_serialized(model: Any) -> Optional[str]:
    """Why a model cannot be saved with its layers; None if it can."""
    try:
        keras_of(model).saving.serialize_keras_object(model)
    except Exception as error:
        return describe(error)
    return None
