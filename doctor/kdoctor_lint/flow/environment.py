"""Names and what they stand for, and the functions that look them up where they are defined."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping

from kdoctor_lint.flow.joining import join
from kdoctor_lint.flow.values import UNKNOWN, External, Object, Value

_BUILTINS: Mapping[str, External] = {name: External(f"builtins.{name}") for name in dir(builtins)}


class Env:
    """The names of a module, a class body or one call of a function."""

    __slots__ = ("_outer_names", "is_class", "names", "parent", "stars")

    def __init__(self, parent: Env | None = None, *, is_class: bool = False) -> None:
        self.names: dict[str, Value] = {}
        self.parent = parent
        self.is_class = is_class
        self.stars: list[str] = []
        """Modules of which everything was imported."""
        self._outer_names: dict[str, Env] = {}

    def get(self, name: str) -> Value:
        """What a name stands for."""
        env: Env | None = self
        while env is not None:
            found = env.names.get(name)
            if found is not None:
                return found
            parent = env.parent
            if parent is None and env.stars:
                return self._starred(name, env.stars)
            env = parent
        return _BUILTINS.get(name, UNKNOWN)

    def set(self, name: str, value: Value) -> None:
        """Bind a name."""
        home = self._outer_names.get(name)
        if home is None:
            self.names[name] = value
        else:
            home.names[name] = join(home.names.get(name, value), value)

    def declare_outer(self, names: list[str], *, to_module: bool) -> None:
        """``global`` and ``nonlocal``."""
        home = self.module() if to_module else (self.parent or self)
        self._outer_names.update(dict.fromkeys(names, home) if home is not self else {})

    def module(self) -> Env:
        """The environment of the module."""
        env = self
        while env.parent is not None:
            env = env.parent
        return env

    def closure(self) -> Env:
        """Where functions that are defined here look names up: class bodies are left out."""
        env = self
        while env.is_class and env.parent is not None:
            env = env.parent
        return env

    @staticmethod
    def _starred(name: str, modules: list[str]) -> Value:
        if name in _BUILTINS:
            return _BUILTINS[name]
        # With one such import, a name that is defined nowhere else can only come from there.
        return External(f"{modules[0]}.{name}") if len(modules) == 1 else UNKNOWN


class Function(Value):
    """A function, method or lambda of the script."""

    __slots__ = ("env", "node", "receiver")

    def __init__(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, env: Env, receiver: Object | None = None
    ) -> None:
        self.node = node
        self.env = env
        self.receiver = receiver
