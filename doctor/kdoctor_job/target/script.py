"""The job's script, run up to its ``fit``: ``kdoctor check --model "train.py --batch 64"``."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import linecache
import os
import re
import shlex
import sys
import threading
import traceback
import types
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

import tensorflow as tf

from kdoctor_job.target.first_step import FirstStep
from kdoctor_job.target.model import is_compiled
from kdoctor_job.target.notebook import run_notebook
from kdoctor_job.target.other_fits import other_fits
from kdoctor_job.target.parts import PartError, call, describe, keras_of
from kdoctor_job.target.saves import first_save, numbers_of_history
from kdoctor_job.target.summaries import refuse_writers
from kdoctor_target.runner.case import NotHere

PART = "script"
_KERASES = ("keras", "tf_keras")
_ALONE = "without strategy.run"
_LOOPS = {
    "strategy.run": "kdoctor lint reads it, and --loop with --restore shows whether it comes back",
    "train_on_batch": "call kdoctor.guard(model, data, strategy) before it",
}
_NAME_IT = "Name a script or module and its arguments without a launcher (torchrun): --model 'train.py --lr 1'."
_GIVE_ARGUMENTS = "Give it the arguments that it needs, as in --model '{} --batch 64'."
_COMPILE = "Call model.compile(...) in strategy.scope() before fit: fit raises an error without it."
_USAGE = 2
"""The exit status of parsers of arguments."""
_ERROR = re.compile(r"^.{0,80}?\berror: ", re.IGNORECASE)
"""What parsers of arguments put before a message."""
_ONE_STEP = {"epochs": 1, "initial_epoch": 0, "steps_per_epoch": 1, "callbacks": None, "verbose": 0}
"""Arguments of a ``fit`` before the one that is examined. Callbacks could write files."""
_SETTINGS = ("max_queue_size", "workers", "use_multiprocessing")
"""Arguments of ``fit`` in Keras 2 that change no number."""


class TrainingBegins(BaseException):
    """A script trains. It does not derive from Exception, so that the script does not catch it."""

    def __init__(
        self,
        model: Any = None,
        arguments: Dict[str, Any] | None = None,
        call: str = "",
        caller: types.FrameType | None = None,
    ) -> None:
        super().__init__(f"it calls {call or 'fit'}")
        self.model = model
        self.arguments = arguments or {}
        self.call = call
        """What it calls in place of ``fit``."""
        self.place = (caller.f_code.co_filename, caller.f_lineno) if caller else ("", 0)
        """The file and the line where it calls ``fit``."""
        self.values = {**caller.f_globals, **caller.f_locals} if caller else {}
        """What names mean there."""


class OnOneDevice(NotHere):
    """A script trains in a loop outside ``strategy.run``."""

    fix = "Give the step to strategy.run, with batches of strategy.experimental_distribute_dataset(dataset)."


Found = Tuple[Any, Any, Dict[str, Any], Dict[str, Any]]
"""The model, its data, the other arguments of ``fit`` by name, and the facts of ``JobFit``."""


def _unwind(begins: TrainingBegins) -> None:
    raise begins


@dataclass
class Fits:
    """The calls of ``fit`` of a script, of which one is examined. Those before it train one step."""

    number: int = 1
    """The one that is examined."""
    begun: int = 0
    inside: bool = False
    """Whether one of those before it trains."""
    step: FirstStep | None = None
    """What notes the first step of a loop; without it, a loop is not examined."""
    stop: Callable[[TrainingBegins], object] = _unwind
    """What ends the script where it trains."""
    cells: List[str] = field(default_factory=list)
    """Those of a notebook, by their names in stacks."""

    @property
    def awaited(self) -> str:
        """What the script has not come to."""
        return f"its call {self.number} of fit, after {self.begun}" if self.begun else "any fit"

    def one_step(self, fit: Any, given: Dict[str, Any], names: Set[str]) -> Any:
        """Train one step with these arguments, and those of ``names`` that make it one."""
        short = {**_ONE_STEP, **({"validation_steps": 1} if given.get("validation_data") is not None else {})}
        self.inside = True
        try:
            return fit(**{**given, **{name: value for name, value in short.items() if name in names}})
        finally:
            self.inside = False


_STOPPED: List[Fits] = []  # those at which this process stops


def stop_at_guard(model: Any, data: Any, arguments: Any, **more: Any) -> bool:
    """Stop as ``fit`` would, if a script gives this to ``kdoctor.guard`` before the awaited one.

    Returns:
        Whether a script runs up to a later one. Its trainings stop here, too, and are then unknown.

    Raises:
        TrainingBegins: it does.
    """
    if _STOPPED and not _STOPPED[-1].inside and _STOPPED[-1].begun + 1 == _STOPPED[-1].number:
        given = {**more, **((call(PART, arguments) if callable(arguments) else arguments) or {}), "x": data}
        _STOPPED[-1].stop(TrainingBegins(model, {name: value for name, value in given.items() if value is not None}))
    return bool(_STOPPED)


def until_fit(
    command: str,
    number: int = 1,
    step: FirstStep | None = None,
    stay: Callable[[Callable[[], Found]], object] | None = None,
) -> Found:
    """Run a script until it calls the ``fit`` of a model, as Python would start it.

    Args:
        command: ``train.py`` or, as after ``python -m``, ``jobs.train``; and its arguments.
        number: which call of ``fit``, from 1.
        step: notes the first step of a loop.
        stay: is called in place of that ``fit`` with what returns its arguments, and does not return. So nothing of the
            script runs after it, such as a ``finally`` that saves. Without it, the script is unwound.

    Raises:
        PartError: it raises, or ends with an exit status.
        NotHere: it trains in a loop that is not examined, or ends without training.
    """
    words = shlex.split(command)
    heard = _Heard(sys.stderr)
    fits, changes = Fits(number, step=step), contextlib.ExitStack()

    def found(begins: TrainingBegins) -> Found:
        changes.close()
        model, data, given = _given(begins, words[0])
        names = fits.cells if begins.place[0] in fits.cells else [begins.place[0]]
        return model, data, given, {"number": number, **_rest(begins, names, model, after=number > 1)}

    if stay is not None:
        go_on = stay
        fits.stop = lambda begins: go_on(functools.partial(found, begins))
    refuse_writers(PART)
    try:
        with changes:
            changes.enter_context(contextlib.redirect_stderr(heard))
            changes.enter_context(stopped_at_fit(fits))
            _run(words, fits.cells)
    except TrainingBegins as begins:
        return found(begins)
    except SystemExit as end:
        if end.code:
            last = _ERROR.sub("", heard.end.strip().rpartition("\n")[2].strip())
            how = end.code if isinstance(end.code, str) else last or f"exit status {end.code}"
            fix = _GIVE_ARGUMENTS.format(words[0]) if end.code == _USAGE else ""
            raise PartError(PART, f"{words[0]} ends before {fits.awaited}: {how}", fix) from end
    except (PartError, NotHere, KeyboardInterrupt):
        raise
    except BaseException as error:
        traceback.print_exc()
        message = f"{words[0]} raised {describe(error)}"
        raise PartError(PART, message, _fix_of(error, words[0])) from error
    if step is not None and step.calls:
        step.taken()
    if step is not None and step.is_outside and not fits.begun:
        return found(TrainingBegins(call=_ALONE))
    ended = f"{words[0]} ended {f'before {fits.awaited}' if fits.begun else 'without a call of fit'}"
    functions = not fits.cells and any(map(inspect.isfunction, vars(sys.modules["__main__"]).values()))
    raise NotHere(ended + ": name two of its functions with --model and --data" * functions)


def _rest(begins: TrainingBegins, names: List[str], model: Any, *, after: bool) -> Dict[str, Any]:
    """Where a script trains, where a file, or its cells, have other calls of ``fit``, and which save will raise.

    Args:
        begins: where the script ends.
        names: of the file, or of the cells in their order.
        model: that it trains.
        after: whether only later calls count.
    """
    texts = [
        (f"{Path(name).name}:{line}", text) for name in names for line, text in enumerate(linecache.getlines(name), 1)
    ]
    places, source = [place for place, _ in texts], "".join(text for _, text in texts)
    place = f"{Path(begins.place[0]).name}:{begins.place[1]}"
    here = places.index(place) + 1 if place in places else 0
    save = first_save(model, source, here, begins.values)
    found = other_fits(source.encode(), here)
    return {
        "place": place,
        "others": [places[other - 1] for other in found if other > here or not after],
        "history": numbers_of_history(source, here),
        "save": save and {"place": places[save[1] - 1], "error": save[0]},
    }


def _given(reached: TrainingBegins, script: str) -> Tuple[Any, Any, Dict[str, Any]]:
    if not tf.executing_eagerly():
        raise NotHere(f"{script} disables eager execution, without which its model is not examined") from None
    if "horovod" in sys.modules:
        raise NotHere(f"{script} trains with Horovod, and only strategies of tf.distribute are examined") from None
    if reached.call == _ALONE:
        raise OnOneDevice(f"{script} trains on one device, outside strategy.run")
    if reached.call:
        raise NotHere(f"{script} trains in a loop ({reached.call}): {_LOOPS[reached.call]}") from None
    if not is_compiled(reached.model) and type(reached.model).fit is keras_of(reached.model).Model.fit:
        file, line = reached.place
        raise PartError(PART, f"fit is called, and the model is not compiled ({Path(file).name}:{line})", _COMPILE)
    given = reached.arguments
    inputs, targets = given.pop("x", None), given.pop("y", None)
    return reached.model, inputs if targets is None else (inputs, targets), given


def _run(words: List[str], cells: List[str]) -> None:
    """Execute the file, notebook or module as the main module, which stays for what it has defined."""
    main, name = types.ModuleType("__main__"), words[0]
    file = Path(name)
    sys.path.insert(0, str(file.absolute().parent if file.suffix in (".py", ".ipynb") else Path.cwd()))
    sys.modules["__main__"] = main
    if file.suffix == ".ipynb":
        sys.argv = words
        run_notebook(file, vars(main), cells)
        return
    if file.suffix != ".py":
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
        if spec is None or spec.origin is None:
            raise PartError(PART, f"No module named {name!r}", _NAME_IT)
        file, main.__package__ = Path(spec.origin), spec.parent
    main.__file__ = str(file.absolute())
    sys.argv = [str(file), *words[1:]]
    exec(compile(file.read_bytes(), main.__file__, "exec"), vars(main))  # noqa: S102 - the user's script


class _Heard:
    """Standard error, which keeps its end."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.end = stream, ""

    def write(self, text: str) -> Any:
        self.end = (self.end + text)[-2000:]
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _fix_of(error: BaseException, script: str) -> str:
    """The fix of an error that comes from how the script is started; empty for others."""
    if isinstance(error, EOFError):
        return "Give the answer as an argument: a job in a queue has no standard input, either."
    *_, raised_in = traceback.extract_tb(error.__traceback__)
    if isinstance(error, KeyError) and raised_in.filename in (os.__file__, "<frozen os>"):
        return f"The job needs {error.args[0]} in its environment: export {error.args[0]}=..."
    if isinstance(error, IndexError) and "sys.argv[" in (raised_in.line or ""):
        return _GIVE_ARGUMENTS.format(script)
    return _fix_of_import(error, Path(script))


def _called(module: str) -> str:
    """The module with the job's arguments, as one word of a shell."""
    return shlex.quote(shlex.join([module, *sys.argv[1:]]))


def _fix_of_import(error: BaseException, file: Path) -> str:
    package = getattr(error, "name", None)
    if "attempted relative import with no" in str(error) and file.suffix == ".py":
        folders = file.absolute().parents
        above = next(folder for folder in folders[1:] if not (folder / "__init__.py").is_file())
        module = ".".join(file.absolute().relative_to(above).with_suffix("").parts)
        return f"It is a module of a package: use --model {_called(module)}" + f", in {above}" * (above != Path.cwd())
    if not (isinstance(error, ModuleNotFoundError) and package and file.suffix == ".py"):
        return ""
    root = next((folder for folder in file.parents if (folder / package).is_dir()), None)
    if root is None:
        return ""
    module = ".".join(file.with_suffix("").parts)
    do = f"export PYTHONPATH={shlex.quote(str(root))}" if root.name else f"use --model {_called(module)}"
    return f"Python searches {file.parent} for what {file} imports, and {package} is in {root}: {do}"


@contextlib.contextmanager
def stopped_at_fit(fits: Fits | None = None) -> Iterator[None]:
    """Have what trains raise: ``fit`` of any model, also one that its class overrides, and the calls of loops.

    Args:
        fits: which ``fit`` raises; the first one by default.

    Raises:
        TrainingBegins: at the end, if another thread trains.
    """
    fits = fits or Fits()
    undo = contextlib.ExitStack()

    def change(kind: Any, name: str, value: Any) -> None:
        own = vars(kind).get(name)
        undo.callback(*((setattr, kind, name, own) if own else (delattr, kind, name)))
        setattr(kind, name, value)

    def act(keras: Any) -> None:
        for kind, attribute in _changed(keras, fits):
            change(kind, "__getattribute__", attribute)

    finder = _WhenImported(act)
    for name in _KERASES:
        if name in sys.modules:
            finder.act(sys.modules[name])
    sys.meta_path.insert(0, finder)
    change(tf.distribute.Strategy, "run", _stops_run(tf.distribute.Strategy.run, fits))
    if fits.step is not None:
        fits.step.on_one_device = lambda: None if fits.begun else fits.stop(TrainingBegins(call=_ALONE))
        change(tf.GradientTape, "gradient", fits.step.gradient_of(tf.GradientTape.gradient))
        change(tf, "gradients", fits.step.gradient_of(tf.gradients))
        extended = tf.distribute.StrategyExtended
        change(extended, "batch_reduce_to", fits.step.sum_of(extended.batch_reduce_to))
    begun: List[TrainingBegins] = []
    report = threading.excepthook
    _STOPPED.append(fits)

    def keep(raised: Any) -> None:
        if isinstance(raised.exc_value, TrainingBegins):
            begun.append(raised.exc_value)
        else:
            report(raised)

    threading.excepthook = keep
    try:
        yield
    finally:
        threading.excepthook = report
        _STOPPED.remove(fits)
        sys.meta_path.remove(finder)
        undo.close()
        if begun:
            raise begun[0]


def _changed(keras: Any, fits: Fits) -> Iterator[Tuple[Any, Callable[[Any, str], Any]]]:
    """The classes of this Keras whose attributes are others, and what gets them."""
    yield keras.Model, _stops_fit(keras.Model, fits)
    if fits.step is not None:
        legacy = getattr(keras.optimizers, "legacy", keras.optimizers)
        for optimizer in {keras.optimizers.Optimizer, legacy.Optimizer}:
            yield optimizer, fits.step.attributes_of(optimizer)


class _WhenImported(MetaPathFinder):
    """Acts on Keras after its import, before which the script may set its backend."""

    def __init__(self, act: Callable[[Any], None]) -> None:
        self.act = act

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Find Keras as the other finders do, and act on it once it is executed."""
        if fullname not in _KERASES:
            return None
        others = (one for one in sys.meta_path if one is not self)
        spec = next(filter(None, (one.find_spec(fullname, path, target) for one in others)), None)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            loader.exec_module = functools.partial(self._execute, loader.exec_module)
        return spec

    def _execute(self, execute: Callable[[Any], None], module: Any) -> None:
        execute(module)
        self.act(module)


def _stops_fit(kind: Any, fits: Fits) -> Callable[[Any, str], Any]:
    inherited = kind.__getattribute__

    def attribute(model: Any, name: str) -> Any:
        found = inherited(model, name)
        if name not in ("fit", "train_on_batch") or fits.inside:
            return found
        if name != "fit" and fits.step is not None:
            return functools.partial(fits.step.of_train_on_batch, found)
        if name == "fit":
            return functools.partial(_stop_fit, model, found, fits)
        return functools.partial(_stop_loop, fits, name)

    return attribute


def _stops_run(inherited: Callable[..., Any], fits: Fits) -> Callable[..., Any]:
    def run(strategy: Any, *arguments: Any, **named: Any) -> Any:
        keras = tuple(
            f"{Path(str(sys.modules[name].__file__)).parent}{os.sep}" for name in _KERASES if name in sys.modules
        )
        step, stack = fits.step, traceback.walk_stack(None)
        trains = step is not None and step.trains
        if fits.inside or (not trains and any(frame.f_code.co_filename.startswith(keras) for frame, _ in stack)):
            return inherited(strategy, *arguments, **named)  # predict and evaluate
        in_main = threading.current_thread() is threading.main_thread()
        if step is None or strategy is not step.strategy or not in_main:
            return _stop_loop(fits, "train_on_batch" if trains else "strategy.run")
        return step.run(inherited, strategy, *arguments, **named)

    return run


def _stop_loop(fits: Fits, call: str, *_: Any, **__: Any) -> None:
    fits.stop(TrainingBegins(call=call))


def _stop_fit(model: Any, fit: Any, fits: Fits, *arguments: Any, **named: Any) -> Any:
    bound = inspect.signature(fit).bind(*arguments, **named)
    given, names = dict(bound.arguments), set(bound.signature.parameters)
    for one in bound.signature.parameters.values():
        if one.kind is one.VAR_KEYWORD:
            given.update(given.pop(one.name, {}))
            names.update(_ONE_STEP)
    fits.begun += 1
    if fits.begun < fits.number:
        return fits.one_step(fit, given, names)
    caller = sys._getframe(1)  # noqa: SLF001 - a documented function
    given = {name: value for name, value in given.items() if name not in _SETTINGS}
    return fits.stop(TrainingBegins(model, given, caller=caller))
