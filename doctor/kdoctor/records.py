"""Frozen dataclasses whose methods are not compiled for each class.

A command makes some 270 of them, and ``dataclass`` compiles six methods for each: a quarter of its processor time.
"""

import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar

if sys.version_info >= (3, 11):
    from typing import dataclass_transform
else:
    from typing_extensions import dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(made: type[_T]) -> type[_T]:
    """Make the class a ``dataclass(frozen=True, kw_only=True)``, from which others can inherit as from any."""
    own = set(vars(made))
    dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)(made)
    known = fields(made)  # type: ignore[arg-type]
    compared = [one.name for one in known if one.compare]
    key = attrgetter(*compared) if compared else type

    def same(one: Any, other: Any) -> Any:
        return key(one) == key(other) if one.__class__ is other.__class__ else NotImplemented

    methods: dict[str, Callable[..., Any]] = {
        "__init__": _init(made.__qualname__, known),
        "__repr__": _repr,
        "__eq__": same,
        "__hash__": lambda one: hash(key(one)),
    }
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    return made


def _init(of: str, known: tuple[Field[Any], ...]) -> Callable[..., None]:
    defaults = {one.name: one.default for one in known if one.init}
    made = [(one.name, one.default_factory) for one in known if one.default_factory is not MISSING]
    needed = [name for name, default in defaults.items() if default is MISSING and name not in dict(made)]

    def init(self: Any, **given: Any) -> None:
        values = self.__dict__
        values.update(defaults)
        for name, make in made:
            if name not in given:
                values[name] = make()
        values.update(given)
        lacking = [name for name in needed if values[name] is MISSING]
        if lacking or len(values) > len(defaults):
            unknown = [name for name in given if name not in defaults]
            raise TypeError(f"{of}() lacks {', '.join(lacking)}" if lacking else f"{of}() has no {', '.join(unknown)}")
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    return init


def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"
