"""What a Python function names: variables of enclosing functions and of its module."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

_DEEPEST = 8


def plain_function(value: Any) -> Any:
    """The Python function of a method, a partial, a ``tf.function`` or a decorated function; None for other values."""
    for _ in range(8):
        inner = (
            getattr(value, "python_function", None)
            or getattr(value, "__wrapped__", None)
            or getattr(value, "__func__", None)
            or (value.func if isinstance(value, functools.partial) else None)
        )
        if inner is None:
            break
        value = inner
    return value if isinstance(value, types.FunctionType) else None


def cells(function: Any) -> Iterator[Tuple[str, Any]]:
    """Name and value of each variable of an enclosing function that the function uses."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def codes(code: Any) -> Iterator[Any]:
    """The code, and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def defaults(function: Any) -> Dict[str, Any]:
    """The default values of the arguments, by name."""
    given = inspect.signature(function).parameters.values()
    return {item.name: item.default for item in given if item.default is not item.empty}


def global_names(code: Any) -> Set[str]:
    """The names of variables of the module that the code uses, without those of attributes."""
    return {step.argval for step in dis.get_instructions(code) if "GLOBAL" in step.opname or step.opname == "LOAD_NAME"}


def one_shot(dataset_steps: Any, *, is_new: bool) -> Optional[str]:
    """The name of an iterator that ``tf.data.Dataset.from_generator`` reads, directly or in a function; None if none.

    Args:
        dataset_steps: the dataset and those that it is made of.
        is_new: whether the dataset was made for kdoctor; then variables of enclosing functions are new, too.
    """
    seen: Set[int] = set()
    functions: List[Any] = []
    for step in dataset_steps:
        _find_generators(getattr(getattr(step, "_map_func", None), "_func", None), functions, seen, _DEEPEST)
    for function in filter(None, map(plain_function, functions)):
        named = {} if is_new else dict(cells(function))
        for code in codes(function.__code__):
            named.update({name: function.__globals__.get(name) for name in code.co_names})
        for name, value in named.items():
            if hasattr(value, "__next__"):
                return name
    return None


def _find_generators(value: Any, found: List[Any], seen: Set[int], deepest: int) -> None:
    """The functions that TensorFlow's wrappers around a generator keep."""
    if deepest == 0 or id(value) in seen:
        return
    seen.add(id(value))
    if hasattr(value, "_generator"):
        found.append(value._generator)  # noqa: SLF001 - no public equivalent
        return
    function = plain_function(value)
    for _, inner in cells(function) if function is not None else ():
        _find_generators(inner, found, seen, deepest - 1)
