"""Variables of the script, and functions, which look names up where they are defined."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from kdoctor_lint.flow.joining import join
from kdoctor_lint.flow.values import UNKNOWN, Class, Definition, External, Made, Object, Value
from kdoctor_lint.names import EXPORTS, Kind, kind_of

_BUILTINS: Mapping[str, External] = {name: External(f"builtins.{name}") for name in dir(builtins)}


class Env:
    """The names of a module, a class body or one call of a function."""

    def __init__(self, parent: Env | None = None, *, is_class: bool = False) -> None:
        self.names: dict[str, Value] = {}
        self.parent = parent
        self.is_class = is_class
        self.home: ast.Module | None = parent.home if parent is not None else None
        """The other module of the same tree that it belongs to."""
        self.stars: list[str] = []  # Modules imported with ``from ... import *``.
        self.assigned: dict[str, list[Value]] = {}  # Every value that a name gets
        self._outer_names: dict[str, Env] = {}

    def get(self, name: str) -> Value:
        """The value of a name."""
        env: Env | None = self
        while env is not None:
            if name in env.names:
                return env.names[name]
            if env.parent is None and env.stars and name not in _BUILTINS:
                return env.starred(name)
            env = env.parent
        return _BUILTINS.get(name, UNKNOWN)

    def starred(self, name: str) -> Value:
        """A name that is defined nowhere else, so it comes from one of the modules. The last one counts."""
        if len(self.stars) == 1:
            return External(f"{self.stars[0]}.{name}")
        for module in reversed(self.stars):
            if module in EXPORTS and EXPORTS[module].fullmatch(name):
                return External(f"{module}.{name}")
            if kind_of(module) is Kind.UNKNOWN:
                return UNKNOWN
        return UNKNOWN

    def set(self, name: str, value: Value) -> None:
        """Bind a name."""
        home = self._outer_names.get(name)
        (home or self).assigned.setdefault(name, []).append(value)
        if home is None:
            self.names[name] = value
        else:
            home.names[name] = join(home.names.get(name, value), value)

    def all_outer(self, name: str) -> Sequence[Value]:
        """Every value that a name gets in the environments around this one."""
        if self.parent is None or name in self.names:
            return ()
        return self.parent.assigned.get(name) or self.parent.all_outer(name)

    def forget_rebound(self) -> None:
        """Names mean any of their objects from now on, because it is unknown when a function reads them."""
        env: Env | None = self
        while env is not None:
            several = {name: values for name, values in env.assigned.items() if isinstance(values[0], Made)}
            env.names.update({name: reduce(join, values) for name, values in several.items() if name in env.names})
            env = env.parent

    def keep_branch(self, before: Mapping[str, Value]) -> None:
        """Functions that a branch defines call each other, and not those of the same names in another branch."""
        inner = Env(self)
        for name, value in self.names.items():
            if isinstance(value, Function) and value.env is self and before.get(name) is not value:
                inner.names[name], value.env = value, inner

    def declare_outer(self, names: Sequence[str], home: Env) -> None:
        """Bind names elsewhere, as ``global`` and ``nonlocal`` do."""
        if home is not self:
            self._outer_names.update(dict.fromkeys(names, home))

    def module(self) -> Env:
        """The environment of the module."""
        return self if self.parent is None else self.parent.module()

    def closure(self) -> Env:
        """Where functions defined here look names up: class bodies are left out."""
        return self.parent.closure() if self.is_class and self.parent is not None else self


@dataclass(eq=False, slots=True)
class Function(Definition):
    """A function, method or lambda of the script."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    env: Env
    receiver: Object | Class | None = None
    cls: Class | None = None  # The class that defines it

    @property
    def decorators(self) -> set[str]:
        """The last names of its decorators."""
        return {ast.unparse(item).rpartition(".")[2] for item in getattr(self.node, "decorator_list", ())}

    def bound(self, owner: Object | Class) -> Function:
        """What ``owner.name`` is. The class of an object is the first argument of its class methods."""
        cls = owner.cls if isinstance(owner, Object) else owner
        receiver = cls if "classmethod" in self.decorators else owner if isinstance(owner, Object) else None
        return Function(self.node, self.env, None if "staticmethod" in self.decorators else receiver, self.cls)
