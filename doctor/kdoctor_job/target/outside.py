"""State outside the model that its own code reaches: variables, lists, counters, files.

A copy of the model uses the same state. Training the copy would change it, and what a step computes would depend on how
often others were run.
"""

from __future__ import annotations

import builtins
import io
import operator
import os
import sys
import types
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, TypeVar

import numpy as np
import tensorflow as tf

from kdoctor_job.target.cloning import flat
from kdoctor_job.target.functions import cells, codes, defaults, global_names, plain_function
from kdoctor_job.target.layers import layers_of
from kdoctor_job.target.model import raw_compile
from kdoctor_job.target.parts import INSTALLED, is_model, is_own_class

T = TypeVar("T")

_WRITERS = (
    "write_file", "makedirs", "mkdir", "unlink", "rmtree", "write_text", "write_bytes", "GFile", "TFRecordWriter",
    "save", "savez", "savetxt", "save_weights", "savefig", "system",
)  # fmt: skip
"""Names of functions that write or delete files."""
_EFFECTS = ("subprocess", "shutil", "socket", "urllib", "requests", "wandb", "mlflow", "comet_ml", "neptune")
"""Modules whose functions reach files, other programs or the network."""
_ENTRIES = (
    "call", "train_step", "test_step", "compute_loss", "compute_metrics",  # models and layers
    "__call__", "update_state", "result",  # losses, metrics and schedules
    "update_step", "apply_gradients", "apply", "get_gradients",  # optimizers
)  # fmt: skip
_SET_BY_COMPILE = "_allow_sum_over_batch_size"
"""The attribute of a loss that ``compile`` of tf_keras sets."""
_METHODS = (property, staticmethod, classmethod, types.FunctionType)
_MOST = 2000
"""Objects to look at; a job that reaches more is not followed further."""


_LARGEST = 2**26
"""Bytes of an array. Larger ones are data, which a step only reads."""


class Outside:
    """What the job's code reaches outside of the model."""

    def __init__(self, model: Any, *, is_copied: bool) -> None:
        """Follow the user's functions.

        Args:
            model: the job's model.
            is_copied: whether copies share the functions of this very model, because no function builds them.
        """
        self.strategies: List[str] = []
        """Names under which strategies are used."""
        self.unkept: Optional[str] = None
        """Something that cannot be restored."""
        self._kept: List[Tuple[str, Callable[[], bool], Callable[[], object]]] = []
        """Name of a piece of state, whether it changed, and how to restore it."""
        self._seen: Dict[int, Any] = {}
        self._own = {id(one) for one in (model, *layers_of(model))} if is_copied else set()
        entries = list(_entries(model))
        self._packages = {_package(plain_function(function)) for function, _ in entries}
        for function, owner in entries:
            bound = getattr(function, "__self__", None)
            if bound is not None and id(bound) in self._own:
                self.unkept = f"{function.__qualname__} is a method of the model, so copies would share it"
            self._follow(function, owner)
        for loss in flat(raw_compile(model) or {}):
            if any(base.__name__ == "Loss" for base in type(loss).__mro__):
                self._look(type(loss).__name__, loss)  # copies use the same object

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
        for name, value, cell in cells(function):
            self._keep(name, partial(getattr, cell, "cell_contents"), partial(setattr, cell, "cell_contents"))
            self._look(name, value)
        for name, value in defaults(function).items():
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
        if not isinstance(value, (types.ModuleType, types.FunctionType, type)):
            scope = function.__globals__
            self._keep(name, lambda: scope.get(name), lambda before: scope.update({name: before}))
        self._look(name, value)

    def _name(self, name: str, owner: Any) -> None:
        if name == "environ":
            self._keep("os.environ", lambda: dict(os.environ), _set_environment, operator.eq)
        method = getattr(type(owner), name, None) if owner is not None else None
        if method is not None:
            self._follow(getattr(method, "fget", None) or method, owner)

    def _look(self, name: str, value: Any) -> None:  # noqa: C901, PLR0912 - one branch for each kind of value
        """Keep the state of one value, and look further."""
        function = plain_function(value)
        if function is not None:
            if self._is_users(function):
                self._follow(value, getattr(value, "__self__", None))
        elif not self._is_new(value):
            return
        elif id(value) in self._own:
            self.unkept = self.unkept or f"{name} is the model itself or a layer of it, and a copy would use it"
        elif isinstance(value, tf.distribute.Strategy):
            self.strategies.append(name)
        elif is_model(value):
            for variable in value.variables:
                self._keep_variable(name, variable)
        elif _is_variable(value):
            self._keep_variable(name, value)
        elif isinstance(getattr(value, "state", None), tf.Variable):  # tf.random.Generator
            self._keep_variable(name, value.state)
        elif isinstance(value, np.random.Generator):
            generator = value.bit_generator
            self._keep(name, lambda: generator.state, partial(setattr, generator, "state"), operator.eq)
        elif isinstance(value, (io.IOBase, tf.summary.SummaryWriter)) or hasattr(value, "__next__"):
            kind = "an open file" if isinstance(value, io.IOBase) else f"a {type(value).__name__}"
            self.unkept = self.unkept or f"{name} is {kind}"
        elif isinstance(value, (list, dict, set, np.ndarray)):
            self._keep_container(name, value)
        elif isinstance(value, type):
            if self._is_users(value):
                self._keep_attributes(name, value)
        elif self._is_users(type(value)) and hasattr(value, "__dict__"):
            self._keep_attributes(name, value)
            for entry in vars(type(value)).values():
                self._follow(entry, value)

    def _is_users(self, kind: Any) -> bool:
        """Whether a class or function belongs to the job, not to Python or an installed library."""
        if not is_own_class(kind) or _package(kind) in self._packages:
            return is_own_class(kind)
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return file is None or not file.startswith(INSTALLED)

    def _is_new(self, value: Any) -> bool:
        if id(value) in self._seen or len(self._seen) > _MOST:
            return False
        self._seen[id(value)] = value
        return True

    def _keep_variable(self, name: str, variable: Any) -> None:
        self._keep(name, lambda: np.array(variable.numpy()), variable.assign, _are_equal)

    def _keep_container(self, name: str, value: Any) -> None:
        if isinstance(value, np.ndarray):
            if value.nbytes <= _LARGEST:
                self._keep(name, value.copy, partial(np.copyto, value), _are_equal)
            return

        def write(parts: List[Any]) -> None:
            value.clear()
            add = value.extend if isinstance(value, list) else value.update
            add(parts)

        self._keep(name, lambda: list(value.items() if isinstance(value, dict) else value), write, _same)
        for part in list(value.values() if isinstance(value, dict) else value):
            self._look(name, part)

    def _keep_attributes(self, name: str, value: Any) -> None:
        for attribute, part in list(vars(value).items()):
            if attribute.startswith("__") or attribute == _SET_BY_COMPILE or isinstance(part, _METHODS):
                continue
            place = f"{name}.{attribute}"
            self._keep(place, partial(vars(value).get, attribute), partial(setattr, value, attribute))
            self._look(place, part)


def _entries(model: Any) -> Iterator[Tuple[Any, Any]]:
    """The user's functions that a training step calls, with the object that they belong to."""
    compiled = list(flat(raw_compile(model) or {}))
    optimizer = getattr(model, "optimizer", None)
    optimizers = [one for one in (optimizer, getattr(optimizer, "inner_optimizer", None)) if one is not None]
    rates = [getattr(one, "_learning_rate", None) for one in optimizers]
    for one in (model, *layers_of(model), *compiled, *optimizers, *rates):
        if plain_function(one) is not None:
            yield one, getattr(one, "__self__", None)
            continue
        for kind in type(one).__mro__:
            if is_own_class(kind):
                yield from ((vars(kind)[name], one) for name in _ENTRIES if name in vars(kind))


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


def _package(kind: Any) -> str:
    return str(kind.__module__).split(".")[0]


def _is_variable(value: Any) -> bool:
    return isinstance(value, tf.Variable) or (hasattr(value, "assign") and hasattr(value, "numpy"))


def _same(ones: List[Any], others: List[Any]) -> bool:
    return len(ones) == len(others) and all(
        one is other or (isinstance(one, tuple) and isinstance(other, tuple) and _same(list(one), list(other)))
        for one, other in zip(ones, others)
    )


def _are_equal(one: Any, other: Any) -> bool:
    return bool(one.tobytes() == other.tobytes())


def _set_environment(values: Dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(values)
