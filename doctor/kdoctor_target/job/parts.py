"""Finds and calls the functions that make the job's model and data, with clear messages if that fails."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import traceback
from typing import Any, Callable, List, Optional, Tuple

_NODE = re.compile(r"\{\{function_node .*?\}\}\s*| \[Op:\w+\] name:\s*")


class PartError(Exception):
    """The model or the data cannot be examined; the message is for the user."""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part
        """``model`` or ``data``."""


def find(part: str, place: str) -> Callable[[], Any]:
    """The callable that ``package.module:name`` names.

    Raises:
        PartError: the module or name does not exist, importing it raises, or it is not callable.
    """
    module_name, _, attribute = place.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        parents = [module_name.rsplit(".", cut)[0] for cut in range(module_name.count(".") + 1)]
        if error.name not in parents:
            raise PartError(part, f"{place}: importing {module_name} raised {_with_place(error)}") from error
        message = f"{place}: no module named {error.name} (searched from the working directory on)"
        raise PartError(part, message) from error
    except BaseException as error:
        raise PartError(part, f"{place}: importing {module_name} raised {_with_place(error)}") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise PartError(part, f"{place}: module {module_name} has no attribute {attribute}")
        found = getattr(found, name)
    if not callable(found) or is_model(found):
        raise PartError(
            part, f"{place}: expected a function, found {describe_kind(found)}; name a function that makes it"
        )
    made: Callable[[], Any] = found
    return made


def call(part: str, function: Callable[[], Any]) -> Any:
    """The return value of the callable.

    Raises:
        PartError: it requires arguments, or raises.
    """
    name = name_of(function)
    wanted = _required(function)
    if wanted:
        message = f"{name} requires arguments ({', '.join(wanted)}), but is called without any"
        raise PartError(part, f"{message}: give them defaults or wrap the function")
    try:
        return function()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        traceback.print_exc()
        raise PartError(part, f"{name} raised {_with_place(error)}") from error


def _required(function: Callable[[], Any]) -> List[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [item.name for item in parameters if item.default is item.empty and item.kind not in several]


def as_model(value: Any, name: str) -> Any:
    """The value, if it is a Keras model.

    Raises:
        PartError: it is not.
    """
    if is_model(value):
        return value
    raise PartError("model", f"{name} is {describe_kind(value)}, expected a Keras model")


def is_model(value: Any) -> bool:
    """Whether the value is a model of Keras 3 or of Keras 2."""
    return any(isinstance(value, keras.Model) for keras in _kerases())


def keras_of(model: Any) -> Any:
    """The Keras package of the model."""
    return next(keras for keras in _kerases() if isinstance(model, keras.Model))


def _kerases() -> List[Any]:
    loaded = (sys.modules.get(name) for name in ("keras", "tf_keras"))
    return [keras for keras in loaded if hasattr(keras, "Model")]


def replica_devices(strategy: Any) -> List[str]:
    """The device of each replica; one empty name for the default strategy."""
    if is_default(strategy):
        return [""]
    return [str(device) for device in strategy.extended.worker_devices]


def is_default(strategy: Any) -> bool:
    """Whether this is TensorFlow's default strategy: no distribution."""
    return type(strategy).__name__ == "_DefaultDistributionStrategy"


def name_of(function: Any) -> str:
    """The name of a function or of an object's class."""
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def describe(error: BaseException) -> str:
    """The error in one line: its class and the first informative line."""
    plain = _NODE.sub("", str(error))
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    headlines = ("Exception encountered when calling", "Graph execution error", "Detected at node", 'File "')
    informative = [line for line in lines if not line.startswith(headlines)] or lines
    return f"{type(error).__name__}: {informative[0][:300]}" if informative else type(error).__name__


def _with_place(error: BaseException) -> str:
    place = _place(error)
    return describe(error) + (f" ({place[0]}:{place[1]})" if place else "")


def _place(error: BaseException) -> Optional[Tuple[str, int]]:
    """File and line of the innermost frame outside kdoctor and Python's import system."""
    frames = traceback.extract_tb(error.__traceback__)
    strangers = ("kdoctor_target", "importlib", "<frozen")
    users = [frame for frame in frames if not any(name in frame.filename for name in strangers)]
    return (users[-1].filename, users[-1].lineno or 0) if users else None


def describe_kind(value: Any) -> str:
    """What kind of value it is, for a message."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
