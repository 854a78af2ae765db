"""Effects of the job's code that a copy of the model would have, too: files, the environment, attributes of classes."""

from __future__ import annotations

import builtins
import io
import operator
import os
import types
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar

import tensorflow as tf

from kdoctor_job.target.functions import cells, codes, defaults, global_names, plain_function
from kdoctor_job.target.namespaces import Users, entries

T = TypeVar("T")

_WRITERS = (
    "write_file", "makedirs", "mkdir", "unlink", "rmtree", "write_text", "write_bytes", "GFile", "TFRecordWriter",
    "save", "savez", "savetxt", "save_weights", "savefig", "system",
)  # fmt: skip
"""Names of functions that write or delete files."""
_EFFECTS = ("subprocess", "shutil", "socket", "urllib", "requests", "wandb", "mlflow", "comet_ml", "neptune")
"""Modules whose functions reach files, other programs or the network."""
_SET_BY_COMPILE = "_allow_sum_over_batch_size"
"""The attribute of a loss that ``compile`` of tf_keras sets."""
_METHODS = (property, staticmethod, classmethod, types.FunctionType)
_MOST = 2000
"""Objects to look at; a job that reaches more is not followed further."""


class Outside:
    """What the job's code reaches outside of the model."""

    def __init__(self, model: Any) -> None:
        """Follow the user's functions that train this model."""
        self.unkept: Optional[str] = None
        """Something that cannot be restored."""
        self._kept: List[Tuple[str, Callable[[], bool], Callable[[], object]]] = []
        """Name of a piece of state, whether it changed, and how to restore it."""
        self._seen: Dict[int, Any] = {}
        self._is_users = Users(model)
        for function, owner in entries(model):
            self._follow(function, owner)

    def _keep(
        self,
        name: str,
        read: Callable[[], T],
        write: Callable[[T], object],
        is_same: Callable[[T, T], bool] = operator.is_,
    ) -> None:
        before = read()
        self._kept.append((name, lambda: not is_same(before, read()), lambda: write(before)))

    def restore(self) -> List[str]:
        """Restore what changed, and return its names."""
        changed = [(name, undo) for name, is_changed, undo in self._kept if is_changed()]
        for _, undo in changed:
            undo()
        return list(dict.fromkeys(name for name, _ in changed))

    def _follow(self, function: Any, owner: Any) -> None:
        if isinstance(function, partial):
            for value in (*function.args, *function.keywords.values()):
                self._look("functools.partial", value)
        function = plain_function(function)
        if function is None or not self._is_new(function):
            return
        for name, value in (*cells(function), *defaults(function).items()):
            self._look(name, value)
        for code in codes(function.__code__):
            for name in sorted(global_names(code) & set(function.__globals__)):
                self._global(name, function)
            for name in code.co_names:
                self._name(name, owner)
            writes = _why_writes(code, function.__globals__)
            self.unkept = self.unkept or (f"{function.__qualname__} {writes}" if writes else None)

    def _global(self, name: str, function: Any) -> None:
        value = function.__globals__[name]
        if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] in _EFFECTS:
            self.unkept = self.unkept or f"{function.__qualname__} uses {value.__name__}"
        self._look(name, value)

    def _name(self, name: str, owner: Any) -> None:
        if name == "environ":
            self._keep("os.environ", lambda: dict(os.environ), _set_environment, operator.eq)
        method = getattr(type(owner), name, None) if owner is not None else None
        if method is not None:
            self._follow(getattr(method, "fget", None) or method, owner)

    def _look(self, name: str, value: Any) -> None:  # noqa: C901 - one branch for each kind of value
        """Follow what a value does."""
        function = plain_function(value)
        if function is not None:
            if self._is_users(function):
                self._follow(value, getattr(value, "__self__", None))
        elif not self._is_new(value) or isinstance(value, (str, bytes)):
            return
        elif isinstance(value, (io.IOBase, tf.summary.SummaryWriter)) or hasattr(value, "__next__"):
            kind = "an open file" if isinstance(value, io.IOBase) else f"a {type(value).__name__}"
            self.unkept = self.unkept or f"{name} is {kind}"
        elif isinstance(value, (list, set, dict)):
            for part in list(value.values() if isinstance(value, dict) else value):
                self._look(name, part)
        elif isinstance(value, type):
            self._class(name, value)
        elif self._is_users(type(value)):
            for attribute, part in list(getattr(value, "__dict__", {}).items()):
                self._look(f"{name}.{attribute}", part)
            for entry in vars(type(value)).values():
                self._follow(entry, value)

    def _class(self, name: str, kind: Any) -> None:
        for attribute, part in list(vars(kind).items()) if self._is_users(kind) else ():
            if not (attribute.startswith("__") or attribute == _SET_BY_COMPILE or isinstance(part, _METHODS)):
                place = f"{name}.{attribute}"
                self._keep(place, partial(vars(kind).get, attribute), partial(setattr, kind, attribute))
                self._look(place, part)

    def _is_new(self, value: Any) -> bool:
        if id(value) in self._seen or len(self._seen) > _MOST:
            return False
        self._seen[id(value)] = value
        return True


def _why_writes(code: Any, scope: Dict[str, Any]) -> Optional[str]:
    """What code does that may write a file; None if nothing does."""
    writers = [name for name in code.co_names if name in _WRITERS]
    if writers:
        return f"writes files ({writers[0]})"
    if any(isinstance(text, str) and text.startswith("file://") for text in code.co_consts):
        return "writes a file"  # with tf.print
    if "open" in code.co_names and scope.get("open", builtins.open) is builtins.open:
        return "opens a file"
    return None


def _set_environment(values: Dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(values)
