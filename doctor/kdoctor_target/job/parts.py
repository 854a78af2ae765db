"""The model and the data that were named: how they are made, and one clear message where they cannot be."""

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
        PartError: there is no such module or name, importing it raises, or it is no callable.
    """
    module_name, _, attribute = place.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        parents = [module_name.rsplit(".", cut)[0] for cut in range(module_name.count(".") + 1)]
        if error.name not in parents:
            raise PartError(part, f"{place}: importing {module_name} raised {_words(error)}") from error
        message = f"{place}: there is no module {error.name} on the path, which begins in the working folder"
        raise PartError(part, message) from error
    except BaseException as error:
        raise PartError(part, f"{place}: importing {module_name} raised {_words(error)}") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise PartError(part, f"{place}: module {module_name} has no {attribute}")
        found = getattr(found, name)
    if not callable(found) or is_model(found):
        kind = type(found).__name__
        raise PartError(part, f"{place}: this is no function but a {kind}; name a function that makes it")
    made: Callable[[], Any] = found
    return made


def call(part: str, function: Callable[[], Any]) -> Any:
    """What the callable returns.

    Raises:
        PartError: it wants arguments, or raises.
    """
    name = name_of(function)
    wanted = _required(function)
    if wanted:
        message = "{} wants arguments ({}): kdoctor calls it without any, so give them defaults or wrap it"
        raise PartError(part, message.format(name, ", ".join(wanted)))
    try:
        return function()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        traceback.print_exc()
        raise PartError(part, f"{name} raised {_words(error)}") from error


def _required(function: Callable[[], Any]) -> List[str]:
    """Names of the parameters that have no default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [item.name for item in parameters if item.default is item.empty and item.kind not in several]


def as_model(value: Any, name: str) -> Any:
    """The value, which must be a Keras model.

    Raises:
        PartError: it is none.
    """
    if is_model(value):
        return value
    raise PartError("model", f"{name} is no Keras model but {_kind(value)}")


def is_model(value: Any) -> bool:
    """Whether it is a model of Keras 3 or of Keras 2."""
    return any(isinstance(value, keras.Model) for keras in _kerases())


def keras_of(model: Any) -> Any:
    """The Keras that the model is of."""
    return next(keras for keras in _kerases() if isinstance(model, keras.Model))


def _kerases() -> List[Any]:
    loaded = (sys.modules.get(name) for name in ("keras", "tf_keras"))
    return [keras for keras in loaded if hasattr(keras, "Model")]


def replica_devices(strategy: Any) -> List[str]:
    """Device of each replica; the default strategy, which is none, does not tell its own."""
    if is_default(strategy):
        return [""]
    return [str(device) for device in strategy.extended.worker_devices]


def is_default(strategy: Any) -> bool:
    """Whether it is what TensorFlow has where there is no strategy."""
    return type(strategy).__name__ == "_DefaultDistributionStrategy"


def name_of(function: Any) -> str:
    """What the user calls it."""
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def describe(error: BaseException) -> str:
    """The error in one line: class and the first line that says something."""
    plain = _NODE.sub("", str(error))
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    headlines = ("Exception encountered when calling", "Graph execution error", "Detected at node", 'File "')
    telling = [line for line in lines if not line.startswith(headlines)] or lines
    return f"{type(error).__name__}: {telling[0][:300]}" if telling else type(error).__name__


def _words(error: BaseException) -> str:
    place = _place(error)
    return describe(error) + (" ({}:{})".format(*place) if place else "")


def _place(error: BaseException) -> Optional[Tuple[str, int]]:
    """File and line of the innermost frame that is neither kdoctor's nor Python's."""
    frames = traceback.extract_tb(error.__traceback__)
    strangers = ("kdoctor_target", "importlib", "<frozen")
    own = [frame for frame in frames if not any(name in frame.filename for name in strangers)]
    return (own[-1].filename, own[-1].lineno or 0) if own else None


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
