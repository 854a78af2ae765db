"""The user's job as a scenario: ``kdoctor check --model train.py``, or functions for the model and the data."""

import ast
import os
import re
import shlex
import shutil
from dataclasses import replace
from itertools import dropwhile
from pathlib import Path

from kdoctor.commands.shell import quoted
from kdoctor.errors import UsageError, about_missing_file, did_you_mean
from kdoctor.records import record
from kdoctor.smoke.definition import define
from kdoctor.smoke.scenario import AddedTraining
from kdoctor.text.lists import some
from kdoctor_job.own_environment import set_by

OWN_MODEL = "smoke.own-model"
"""The scenario's id. It runs only if a model is given."""
RESTORE = "restore"
"""The case that saves, kills and restores the job. It runs only if a folder is given."""
OWN_DEADLINE_S = 600.0
"""Default deadline for the model, its data and its steps, in seconds."""
DEFAULT_STEPS = 8
_BUDGET = 0.8
"""Share of the deadline for the trainings, so that what was found before it ends is reported."""

SCENARIO = define(
    OWN_MODEL,
    tier="job",
    title="The user's model and data",
    expect="The model is created in the scope, its batch size suits the replicas, and copies of it train a few "
    "steps on all replicas as on one device.",
    cases=("own-model",),
    deadline_s=OWN_DEADLINE_S,
    typical_s=10.0,
    folder=Path(__file__).parent / "target",
    needs_options="kdoctor check --model train.py",
)

_SPACED = re.compile(r".+?\.(?:py|ipynb)(?= |$)")
"""A file in a command, as if it was quoted."""
_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_MODULE, _FUNCTION = re.compile(_DOTTED), re.compile(f"{_DOTTED}:{_DOTTED}")


def in_module(name: str) -> str:
    """``jobs.train:build`` for ``./jobs/train.py:build``; other names as they are.

    Raises:
        UsageError: there is no such file, or it cannot be imported from the working directory.
    """
    path, separator, function = name.partition(".py:")
    if not separator:
        return name
    here = Path.cwd()
    file = existing(Path(os.path.normpath(here / f"{path}.py")), f"{path}.py")
    parts = file.relative_to(here).with_suffix("").parts if file.is_relative_to(here) else ()
    if not parts or not all(part.isidentifier() for part in parts):
        hint = f"Run kdoctor where the job starts, such as: cd {quoted(str(file.parent))}"
        hint = hint if file.stem.isidentifier() else "A module's name has letters, digits and _ only: rename the file"
        raise UsageError(f"{path}.py cannot be imported from the working directory", hint=hint)
    return f"{'.'.join(parts)}:{function}"


def existing(file: Path, shown: str = "") -> Path:
    """The file.

    Raises:
        UsageError: there is none.
    """
    if not file.is_file():
        raise UsageError(f"{shown or file}: no such file{about_missing_file(Path(shown or file), '.py')}")
    return file


def as_words(command: str) -> str:
    """The command of a script, whose file needs no quotes: ``'my train.py' --lr 1`` for ``my train.py --lr 1``."""
    spaced = _SPACED.match(command)
    return quoted(spaced[0]) + command[spaced.end() :] if spaced and Path(spaced[0]).is_file() else command


def file_of_script(command: str) -> Path | None:
    """The file of ``train.py --batch 64``; None for the name of a module, as after ``python -m``.

    Raises:
        UsageError: there is no such file, or these are not the words of a script.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--model {command}: {error}") from error
    name = words[0] if words else ""
    if name.endswith((".py", ".ipynb")):
        return existing(Path(name))
    module = Path(*name.split("."))
    is_here = module.is_dir() or module.with_suffix(".py").is_file()
    if not is_here and (shutil.which(name) or name.startswith(("python", "-m"))):
        own = words[words.index("-m") + 1 :] if "-m" in words else [*dropwhile(lambda word: word[-3:] != ".py", words)]
        own = own or ["train.py", "--batch", "64"]
        hint = f"Leave it out: --model {quoted(shlex.join(own))}"
        raise UsageError(f"--model {command}: {name} is not a script", hint=hint)
    if not _MODULE.fullmatch(name):
        raise UsageError(f"--model {command}: expected a script such as train.py, or FILE.py:FUNCTION with --data")
    if module.is_dir() and not (module / "__main__.py").is_file():
        scripts = sorted(file.stem for file in module.glob("*.py") if file.stem.isidentifier())
        named = f"Name its script: --model {name}.{scripts[0]}" if scripts else None
        raise UsageError(f"--model {name}: a folder without __main__.py", hint=named)
    return None


def checked_function(option: str, name: str) -> None:
    """Validate the name of a function that an option was given.

    Raises:
        UsageError: it is not ``package.module:function``, or that module of the working directory does not define it.
    """
    if not _FUNCTION.fullmatch(name):
        function = option.strip("-").replace("-", "_")
        hint = f"Example: {option} train.py:{function}, or {option} jobs.train:{function}, from the working directory"
        raise UsageError(f"{option} {name}: expected FILE.py:FUNCTION or package.module:function", hint=hint)
    module, _, function = name.partition(":")
    file = Path(*module.split("."))
    names = None if file.is_dir() else _names(file.with_suffix(".py"))
    if names is not None and function.partition(".")[0] not in names:
        near = did_you_mean(function, names) or f"; it has {some(sorted(names)) or 'no function'}"
        raise UsageError(f"{option}: {file}.py has no {function}{near}")


def _names(file: Path) -> set[str] | None:
    """Every name that a program gives to anything; None if it cannot be read, or takes names from elsewhere."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (OSError, SyntaxError, ValueError):
        return None
    imported = [
        alias.asname or alias.name for node in nodes for alias in getattr(node, "names", ()) if hasattr(alias, "name")
    ]
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    names = {*imported, *used, *defined}
    return None if names & {"*", "globals", "vars", "exec", "setattr", "__getattr__"} else names


@record
class UserModel:
    """The user's script, or the model and the data, each given as ``package.module:function``."""

    model: str
    """Without ``data``, the script and its arguments, in the words of a shell."""
    data: str | None
    fit_arguments: str | None = None
    """A function that returns other arguments of ``fit``."""
    fit: int = 1
    """Which call of ``fit`` of the script, from 1."""
    steps: int = DEFAULT_STEPS
    steps_per_epoch: int | None = None
    deadline_s: float = OWN_DEADLINE_S
    restore: str | None = None
    """The folder on the file system where the job saves; None for no restoring."""

    def __post_init__(self) -> None:
        """Validate the names.

        Raises:
            UsageError: a name is malformed.
        """
        model = None if self.data is None else self.model
        given = (("--model", model), ("--data", self.data), ("--fit-arguments", self.fit_arguments))
        for option, name in given:
            if name is not None:
                checked_function(option, name)

    def training(self) -> AddedTraining:
        """The scenario with this model and data.

        Raises:
            UsageError: there is no such file, or the job does not train on TensorFlow.
        """
        command = self.model if self.data else as_words(self.model)
        settings = (
            ("model", command),
            ("data", self.data),
            ("fit_arguments", self.fit_arguments),
            ("fit", self.fit),
            ("steps", self.steps),
            ("steps_per_epoch", self.steps_per_epoch),
            ("budget_s", int(_BUDGET * self.deadline_s)),
            ("restore", self.restore),
        )
        cases = (*SCENARIO.cases, *([RESTORE] if self.restore else []))
        scenario = replace(SCENARIO, settings=settings, deadline_s=self.deadline_s, cases=cases)
        script = None if self.data else file_of_script(command)
        folder = Path.cwd() if script is None else script.absolute().parent
        module = Path(*self.model.partition(":")[0].split(".")).with_suffix(".py")
        environment = set_by(script or module)
        backend = {**os.environ, **environment}.get("KERAS_BACKEND") or "tensorflow"
        if backend != "tensorflow":
            why = f"--model examines jobs on TensorFlow, and this one has KERAS_BACKEND={backend}"
            raise UsageError(why, hint="Leave --model out to examine the machine")
        return AddedTraining(
            scenario=scenario,
            options=f"--model {quoted(self.model)}{f' --fit {self.fit}' if self.fit > 1 else ''}",
            folder=folder,
            environment=environment,
        )
