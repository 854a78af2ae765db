"""Finds and calls the functions that make the job's model and data, with clear messages if that fails."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import sysconfig
import tempfile
import traceback
from pathlib import Path
from typing import Any, Callable, List, Optional

_NOISE = re.compile(
    r"\x1b\[[0-9;]*m|Exception encountered: |\{\{function_node .*?\}\}\s*| for '\{\{.*?'(?= with)| \[Op:\w+\] name:\s*"
)
"""Colours of Keras, and names of graph nodes."""
_QUOTED_FRAME = re.compile(r'^\s*File "(.+?)", line (\d+)', re.MULTILINE)
_HEADLINES = (
    "Could not automatically infer the output shape",
    "Error encountered:",
    "Exception encountered",
    "Error when deserializing class",
    "Graph execution error",
    "Detected at node",
    "<stack traces unavailable>",
    'File "',
)
_COUNTED = re.compile(r"^\d+ root error\(s\) found\.?$|^\(\d+\)\s*[A-Z_]+:\s*")
"""What TensorFlow puts before the first of several errors."""
_LONGEST = 300
_OUTSIDE = "An import runs what is in no function. To examine it as a script, use --model {} alone."
_ELSEWHERE = "Run kdoctor where the job starts, or correct the module's name."
_FRAMEWORKS = re.compile(
    r"[/\\](kdoctor_target|kdoctor_job[/\\]target|tensorflow|keras|tf_keras|numpy)[/\\]|__autograph_generated|^<|\.pyx$"
)
"""Files that are never the job's, even if the job itself is installed as a package."""

INSTALLED = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
"""Folders of Python and of installed packages."""


class PartError(Exception):
    """The model or the data cannot be examined; the message is for the user."""

    def __init__(self, part: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.part = part
        """``model`` or ``data``."""
        self._fix = fix

    @property
    def record(self) -> dict[str, Any]:
        """As the fact ``JobProblem``; an error of the job's code is the cause of this one."""
        return {"part": self.part, "message": str(self), "raised": self.__cause__ is not None, "fix": self._fix}


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
            raise PartError(part, f"{place}: importing {module_name} raised {describe(error)}") from error
        message = f"{place}: no module named {error.name} (searched from the working directory on)"
        raise PartError(part, message, _ELSEWHERE) from None
    except BaseException as error:
        lines = [one.line or "" for one in traceback.extract_tb(error.__traceback__) if one.name == "<module>"]
        fix = _OUTSIDE.format(module_name) if any(".fit(" in line for line in lines) else ""
        raise PartError(part, f"{place}: importing {module_name} raised {describe(error)}", fix) from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            own = [one for one in dir(found) if getattr(getattr(found, one, None), "__module__", "") == module_name]
            fix = f"Name a function of {module_name}{': ' if own else ''}{', '.join(own)}."
            raise PartError(part, f"{module_name} has no {attribute}", fix)
        found = getattr(found, name)
    if not callable(found) or is_model(found):
        raise PartError(
            part, f"{place}: expected a function, found {describe_kind(found)}; name a function that makes it"
        )
    made: Callable[[], Any] = found
    return made


def call(part: str, function: Callable[..., Any], **offered: Any) -> Any:
    """The return value of the callable, which gets what is offered if it has a parameter of that name.

    Raises:
        PartError: it requires arguments, or raises.
    """
    name = name_of(function)
    given = {name: value for name, value in offered.items() if takes(function, name)}
    wanted = [name for name in _required(function) if name not in given]
    if wanted == ["folder"]:  # where the job saves, which is not examined here
        with tempfile.TemporaryDirectory(prefix="kdoctor-job-") as folder:
            return call(part, function, folder=folder, **offered)
    if wanted:
        message = f"{name} requires arguments ({', '.join(wanted)}), but is called without any"
        raise PartError(part, f"{message}: give them defaults or wrap the function")
    try:
        return function(**given)
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, PartError)):
            raise
        traceback.print_exc()
        raise PartError(part, f"{name} raised {describe(error)}") from error


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether the function has a parameter of that name."""
    return any(item.name == name for item in _parameters(function))


def _required(function: Callable[..., Any]) -> List[str]:
    return [item.name for item in _parameters(function) if item.default is item.empty]


def _parameters(function: Callable[..., Any]) -> List[inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [item for item in parameters if item.kind not in several]


def as_model(value: Any, name: str) -> Any:
    """The value, if it is a Keras model.

    Raises:
        PartError: it is not.
    """
    if is_model(value):
        return value
    fix = "Give a Keras model, or a function without arguments that returns one."
    raise PartError("model", f"{name} is {describe_kind(value)}, expected a Keras model", fix)


def is_model(value: Any) -> bool:
    """Whether the value is a model of Keras 3 or of Keras 2."""
    return any(isinstance(value, keras.Model) for keras in _kerases())


def keras_of(model: Any) -> Any:
    """The Keras package of the model."""
    return next(keras for keras in _kerases() if isinstance(model, keras.Model))


def _kerases() -> List[Any]:
    loaded = (sys.modules.get(name) for name in ("keras", "tf_keras"))
    return [keras for keras in loaded if hasattr(keras, "Model")]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a training ended for want of memory, which libraries say in errors of several kinds."""
    text = f"{type(error).__name__}: {error}"
    return any(words in text for words in ("ResourceExhausted", "MemoryError", "OOM when", "ut of memory"))


def replica_devices(strategy: Any) -> List[str]:
    """The device of each replica; one empty name for the default strategy."""
    if is_default(strategy):
        return [""]
    return [str(device) for device in strategy.extended.worker_devices]


def is_own_class(kind: Any) -> bool:
    """Whether the class is the user's: not of Keras, TensorFlow or Python."""
    return str(kind.__module__).split(".")[0] not in ("keras", "tf_keras", "tensorflow", "builtins")


def is_default(strategy: Any) -> bool:
    """Whether this is TensorFlow's default strategy: no distribution."""
    return type(strategy).__name__ == "_DefaultDistributionStrategy"


def name_of(function: Any) -> str:
    """The name of a function or of an object's class."""
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def describe(error: BaseException, *, folder: str = "") -> str:
    """The error in one line: its class, the first informative line, and where the user's code raised it.

    Args:
        error: of the user's code.
        folder: of kdoctor, which paths in it do not show.
    """
    if error.__context__ is not None and str(error).startswith("Unable to automatically build the model"):
        return describe(error.__context__)
    said = str(error).replace(folder and f"{folder}{os.sep}", "")
    if isinstance(error, OSError) and error.errno and error.strerror:
        # The file and the reason first, since long messages are cut. HDF5 has a message where others have the reason.
        reason = os.strerror(error.errno)
        more = None if error.strerror == reason else error.strerror
        said = ": ".join(str(part) for part in (error.filename, reason, more) if part)
    lines = [_COUNTED.sub("", line.strip()) for line in _innermost(_NOISE.sub("", said)).splitlines()]
    lines = [line for line in lines if line]
    kind = type(error).__name__
    telling = [line for line in lines if not line.replace(f"{kind}: ", "", 1).lstrip("'").startswith(_HEADLINES)]
    informative = next(iter(telling or lines), "")
    if len(informative) > _LONGEST:
        informative = informative[: _LONGEST - 3] + "..."
    text = informative if informative.startswith(f"{kind}:") else f"{kind}: {informative}" if informative else kind
    place = _place(error)
    return f"{text} ({place})" if place else text


def _innermost(message: str) -> str:
    """The message itself, from one that quotes the frames of converted code before it."""
    if not message.lstrip().startswith("in user code:"):
        return message
    *_, last = _QUOTED_FRAME.split(message)
    return re.split(r"\n\s*\n", last, maxsplit=1)[-1] or message


def _place(error: BaseException) -> Optional[str]:
    """``train.py:12``: the innermost frame of the user's code; None if there is none.

    Frames that the message quotes are inner ones: TensorFlow converted or called that code.
    """
    frames = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
    frames += [(file, int(line)) for file, line in _QUOTED_FRAME.findall(str(error))]
    users = [frame for frame in frames if not _FRAMEWORKS.search(frame[0]) and not _is_pythons(frame[0])]
    own = [frame for frame in users if not frame[0].startswith(INSTALLED)]
    if not users:
        return None
    file, line = (own or users)[-1]
    if re.search(r"[/\\]ipykernel_\d+[/\\]", file):
        return f"line {line} of a notebook cell"
    path = Path(file)
    shown = path.relative_to(Path.cwd()) if Path.cwd() in path.parents else path
    return f"{shown}:{line}"


def _is_pythons(file: str) -> bool:
    folder = sysconfig.get_path("stdlib") + os.sep
    return file.startswith(folder) and not file.startswith(folder + "site-packages")


def describe_kind(value: Any) -> str:
    """What kind of value it is, for a message."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
