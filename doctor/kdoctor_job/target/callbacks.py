"""Where the job's callbacks save, and what of them would end the job, as far as it can be read."""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import re
import textwrap
from pathlib import Path
from typing import Any, Iterator, Optional, Sequence, Set, Tuple, Union

from kdoctor_job.target.parts import is_own_class
from kdoctor_job.target.saves import why_not_serialized
from kdoctor_job.target.summaries import why_none

_HOOK, _LOGS = "on_epoch_end", 2
_READS = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.If, ast.IfExp, ast.For, ast.FormattedValue, ast.Return)
"""What uses the numbers without keeping them. Anything else could add some."""
_METHODS = ("get", "items", "keys", "values", "copy")
_NAMES_A_PATH = re.compile("path|(?<!pro)file|dir|folder")
"""Names of a callback's attributes whose texts are paths."""
_SAVE = {"ModelCheckpoint", "CSVLogger", "BackupAndRestore", "TensorBoard"}
_SETS_RATE = {"ReduceLROnPlateau", "LearningRateScheduler"}


def why_it_raises(callback: Any, model: Any, schedule: Optional[str]) -> Optional[Tuple[str, str]]:
    """Why a callback will end the job after its first steps, and what to do; None if that is not known.

    Args:
        callback: of the job.
        model: that it gets.
        schedule: that decides about the learning rate.
    """
    name = type(callback).__name__
    if schedule and _SETS_RATE & _classes(callback):
        return f"{name} sets the learning rate, which {schedule} decides: it raises", "Use one of them, not both."
    missing = why_none() if "TensorBoard" in _classes(callback) else None
    if missing:
        return f"{name} writes summaries, but {missing[0]}", missing[1]
    folder = unwritable(callback)
    if folder:
        return f"{name} saves in {folder}, which is not writable", "Make it writable for the job, or save elsewhere."
    whole = "ModelCheckpoint" in _classes(callback) and not callback.save_weights_only
    if whole and str(callback.filepath).endswith(".keras"):
        why = why_not_serialized(model)
        if why:
            fix = "Give that class a get_config with the arguments of its __init__, or save weights only."
            return f"{name} cannot save the model: {why}", fix
    return None


def _classes(callback: Any) -> Set[str]:
    return {kind.__name__ for kind in type(callback).__mro__}


def paths(callback: Any) -> Iterator[Tuple[str, Union[str, "os.PathLike[str]"]]]:
    """Its attributes that are paths."""
    for name, value in vars(callback).items():
        if _NAMES_A_PATH.search(name) and isinstance(value, (str, os.PathLike)) and str(value):
            yield name, value


def other_place(callbacks: Sequence[Any], folder: Path) -> Optional[str]:
    """The first path that a callback has outside the folder, where it would write over the user's files."""
    for callback in callbacks:
        for name, value in paths(callback):
            place = Path(value).resolve()
            if folder.resolve() not in (place, *place.parents):
                return f"{type(callback).__name__}.{name} is {str(value)!r}"
    return None


def unwritable(callback: Any) -> Optional[str]:
    """The folder in which one of Keras saves, or the nearest one that exists, if this user cannot write there."""
    for _, value in paths(callback) if _SAVE & _classes(callback) else ():
        place = Path(value).absolute()
        folder = next((one for one in (place, *place.parents) if one.is_dir()), None)
        if folder and "://" not in str(value) and not os.access(folder, os.W_OK):
            return str(folder)
    return None


def numbers_read(callback: Any) -> Optional[Set[str]]:
    """What ``logs["name"]`` of its ``on_epoch_end`` needs; None if that may add numbers, or its code is not known."""
    found: Set[str] = set()
    for kind in type(callback).__mro__:
        if is_own_class(kind) and _HOOK in vars(kind):
            try:
                hook = vars(kind)[_HOOK]
                code = ast.parse(textwrap.dedent(inspect.getsource(hook)))
                logs = list(inspect.signature(hook).parameters)[_LOGS]
            except (OSError, TypeError, ValueError, SyntaxError, IndexError):
                return None
            uses = [node for node in ast.walk(code) if any(_is(child, logs) for child in ast.iter_child_nodes(node))]
            if not all(map(_reads, uses)):
                return None
            asked = {_constant(node.left) for node in uses if isinstance(node, ast.Compare)}
            found |= {_constant(node.slice) for node in uses if isinstance(node, ast.Subscript)} - asked - {""}
    return found


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _constant(node: ast.AST) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _reads(use: ast.AST) -> bool:
    """Whether a part of the code, which has the numbers, cannot add any."""
    if isinstance(use, ast.Call):
        called = ast.unparse(use.func)
        return hasattr(builtins, called) or called.startswith("super()")
    if isinstance(use, ast.Subscript):
        return isinstance(use.ctx, ast.Load)
    return isinstance(use, _READS) or (isinstance(use, ast.Attribute) and use.attr in _METHODS)
