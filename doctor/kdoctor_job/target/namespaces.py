"""Which variables of a module a training could change: those that the job's functions use, also through others."""

from __future__ import annotations

import dis
import sys
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Set, Tuple

import tensorflow as tf

from kdoctor_job.target.functions import codes, global_names, plain_function
from kdoctor_job.target.layers import layers_of
from kdoctor_job.target.model import raw_compile
from kdoctor_job.target.parts import INSTALLED, is_own_class

_ENTRIES = (
    "call", "train_step", "test_step", "compute_loss", "compute_metrics",  # models and layers
    "__call__", "update_state", "result",  # losses, metrics and schedules
    "update_step", "apply_gradients", "apply", "get_gradients",  # optimizers
)  # fmt: skip


class Users:
    """What belongs to the job, which may be installed itself, and not to Python or a library."""

    def __init__(self, model: Any) -> None:
        self._packages = {_package(plain_function(function)) for function, _ in entries(model)}

    def __call__(self, kind: Any) -> bool:
        """Whether this class or function does."""
        if not is_own_class(kind) or _package(kind) in self._packages:
            return is_own_class(kind)
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return file is None or not file.startswith(INSTALLED)


def _package(kind: Any) -> str:
    return str(kind.__module__).partition(".")[0]


def entries(model: Any) -> Iterator[Tuple[Any, Any]]:
    """The user's functions that a training step calls, with the object that they belong to."""
    compiled = [one for one in tf.nest.flatten(raw_compile(model) or {}) if one is not None]
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


class Reached:
    """The names of such variables, by function."""

    def __init__(self, is_users: Users, is_state: Callable[[Any], bool]) -> None:
        """``is_state``: whether an object is copied with the model."""
        self._is_users = is_users
        self._is_state = is_state
        self._names: Dict[int, FrozenSet[str]] = {}

    def names(self, function: Any) -> FrozenSet[str]:
        """The variables of the function's module that it assigns, that hold state, or that are functions with some."""
        if id(function) not in self._names:
            scope = function.__globals__
            found = {name for name in _used(function) if self._is_state(scope[name]) or self._has_some(scope[name])}
            self._names[id(function)] = frozenset(found | (_assigned(function) & scope.keys()))
        return self._names[id(function)]

    def _has_some(self, value: Any) -> bool:
        waiting, seen = [value], set()
        while waiting:
            function = plain_function(waiting.pop())
            if function is None or id(function) in seen or not self._is_users(function):
                continue
            seen.add(id(function))
            used: List[Any] = [function.__globals__[name] for name in _used(function)]
            if function.__closure__ or _assigned(function) or any(map(self._is_state, used)):
                return True
            waiting += used
        return False

    def of_class(self, kind: Any) -> Iterator[str]:
        """The names of methods and attributes that the user's class defines and a copy needs for itself."""
        for name, entry in vars(kind).items():
            function = plain_function(getattr(entry, "fget", None) or entry)
            if function is not None and self._is_users(function):
                if self.names(function) or set(function.__code__.co_freevars) - {"__class__"}:
                    yield name
            elif isinstance(entry, (list, dict, set)) and not name.startswith("__"):
                yield name


def _used(function: Any) -> Iterator[str]:
    for code in codes(function.__code__):
        yield from global_names(code) & function.__globals__.keys()


def _assigned(function: Any) -> Set[str]:
    steps = (step for code in codes(function.__code__) for step in dis.get_instructions(code))
    return {step.argval for step in steps if step.opname == "STORE_GLOBAL"}


def member(entry: Any, copy: Callable[[Any], Any]) -> Any:
    """The copy of what a class has under a name."""
    if isinstance(entry, property):
        return property(copy(entry.fget), copy(entry.fset), copy(entry.fdel), entry.__doc__)
    if isinstance(entry, (staticmethod, classmethod)):
        return type(entry)(copy(entry.__func__))
    return copy(entry)
