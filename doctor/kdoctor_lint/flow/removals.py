"""Notes what a script uses that newer releases of TensorFlow and Keras no longer have."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from kdoctor_lint.edits import Called, Fix
from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.call import Call
from kdoctor_lint.flow.environment import Env
from kdoctor_lint.flow.interpreter import Interpreter
from kdoctor_lint.flow.texts import ending_of
from kdoctor_lint.flow.trace import Gone, home_of
from kdoctor_lint.flow.values import Value
from kdoctor_lint.names import Kind, kind_of
from kdoctor_lint.removed import REMOVED, Removed, removed_in

_KERAS_ONLY = frozenset({
    "evaluate_generator", "experimental_make_numpy_dataset", "experimental_run_v2", "fit_generator", "get_gradients",
    "predict_classes", "predict_generator",
})  # fmt: skip
"""Methods that only Keras and TensorFlow have, so the receiver may be unknown."""
_METRIC = re.compile(r"loss|acc|metric|auc|iou|precision|recall|f1", re.IGNORECASE)
"""Names of metrics. Only those of Keras have ``reset_states``, but layers still have it."""
_ROOTS = ("keras.", "tensorflow.", "builtins.", "abc.", "typing.")
"""Modules whose classes define no method that Keras has removed."""
_INTERNAL = ("keras.src.", "tensorflow.python.")
_ONLY_KERAS_LOADS = frozenset({"use_multiprocessing", "max_queue_size"})
"""Arguments that only methods of Keras have, so the receiver may be unknown."""
_WEIGHTS = (".weights.h5",)
_MODELS = (".keras", ".h5", ".hdf5")
_OF_ARRAYS = re.compile(
    r"tensorflow\.((math|nn|image|linalg|signal|sparse|strings)\.)?"
    r"(?!(function|group|is_tensor|no_op|print|py_function|numpy_function|no_gradient)$)[a-z]\w*$"
)
"""Functions of TensorFlow that take tensors."""


def note_name(interpreter: Interpreter, node: ast.Attribute, name: str) -> None:
    """A name of another module is used as ``module.name``."""
    if name in REMOVED:
        gone = interpreter.trace.gone
        if gone and gone[-1].node is node.value:
            gone.pop()  # the entry of the module that the name is in
        _note(interpreter, node, name)


def note_import(interpreter: Interpreter, node: ast.alias, module: str, name: str) -> None:
    """A name is imported from a module. The names of internal modules differ from public ones."""
    found = removed_in(name) or REMOVED.get(f"from {module} import {node.name}") or removed_in(module.partition(".")[0])
    if found is None or module.startswith(_INTERNAL) or interpreter.tests_release or home_of(node) is not None:
        return
    interpreter.trace.gone.append(Gone(node, found))


def note_attribute(interpreter: Interpreter, node: ast.Attribute, owner: Value, env: Env) -> None:
    """An attribute of an object is used, such as ``optimizer.lr``."""
    if node.attr == "lr":
        certain = _resolved(interpreter, node, owner, env)
        # In callbacks, for example. Only Keras has models with one optimizer.
        of_unknown = isinstance(owner, val.Method) and val.is_unknown(owner.receiver)
        if isinstance(owner, val.Optimizer) or (of_unknown and ast.unparse(node.value).endswith("model.optimizer")):
            _note(interpreter, node, "Optimizer.lr", certain)
    elif node.attr == "auto_shard" and isinstance(owner, val.Method) and owner.name == "experimental_distribute":
        _note(interpreter, node, "DistributeOptions.auto_shard", lambda: type(owner.receiver) is val.Object)


def note_call(call: Call, callee: Value, env: Env) -> None:
    """A function, a class or a method is called."""
    if isinstance(callee, val.External):
        _note_external(call, callee.name)
    elif isinstance(call.node.func, ast.Attribute):
        receiver = getattr(callee, "receiver", None) or val.UNKNOWN
        certain = _resolved(call.interpreter, call.node.func, receiver, env)
        if isinstance(callee, val.Method):
            for form in _removed(call, receiver, callee.name):
                if form in REMOVED:
                    _note(call.interpreter, call.node, form, certain)


def _note(interpreter: Interpreter, node: ast.AST, name: str, certain: Callable[[], bool] = lambda: True) -> None:
    if not interpreter.tests_release and home_of(node) is None:
        removed = REMOVED[name]
        interpreter.trace.gone.append(Gone(node, removed, _fix(removed, node), certain))


def _resolved(interpreter: Interpreter, node: ast.Attribute, receiver: Value, env: Env) -> Callable[[], bool]:
    """Whether an object is certainly of Keras or TensorFlow, each time that this code runs.

    This is decided at the end, when every path to it is known. A name that the script defines itself is never certain.
    """
    others = env.all_outer(node.value.id) if isinstance(node.value, ast.Name) else ()
    checks = interpreter.checks.setdefault(id(node), [])
    checks += [receiver, *others]
    own, replaced = interpreter.names_set, interpreter.exchanged
    return lambda: (
        node.attr not in own() and all(_is_external(one, node.attr) and one not in replaced for one in checks)
    )


def _is_external(value: Value, name: str) -> bool:
    """Whether a class of Keras or TensorFlow defines what an object has under a name."""
    if not isinstance(value, val.Made) or isinstance(value, val.Foreign):
        return value is val.NONE or isinstance(value, val.Strategy)
    bases = value.cls.all_bases() if value.cls is not None else []
    own = value.cls is not None and any(map(value.cls.member, (name, "__getattr__", "__getattribute__")))
    known = all(isinstance(base, val.External) and base.name.startswith(_ROOTS) for base in bases)
    return known and not own and (value.cls is None or name not in value.attributes)


def set_in(body: Sequence[ast.stmt]) -> AbstractSet[str]:
    """Names of functions, methods and attributes that a script defines, and its strings, as ``setattr`` has them."""
    names = set[str]()
    for part in (part for statement in body for part in ast.walk(statement)):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(part.name)
        elif isinstance(part, ast.Attribute | ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(getattr(part, "attr", getattr(part, "id", "")))
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            names.add(part.value)
    return names - {"lr"}


def _fix(removed: Removed, node: ast.AST) -> Fix | None:
    edit = removed.edit
    if edit is None or not edit.fits(node):
        return None
    return Fix(edit, node, removed.safe and not (isinstance(edit, Called) and edit.name and not edit.is_lossless(node)))


def _note_external(call: Call, name: str) -> None:
    kind, short = kind_of(name), name.rpartition(".")[2]
    _note_use(call, name)
    if not name.startswith("keras."):
        return
    owners = {Kind.OPTIMIZER: ("Optimizer",), Kind.LAYER: ("Layer", short), Kind.CALLBACK: (short,)}
    for owner in owners.get(kind, ()):
        for key in call.keywords:
            if f"{owner}({key}=)" in REMOVED:
                _note(call.interpreter, call.node, f"{owner}({key}=)")


def _note_use(call: Call, name: str) -> None:
    """A function or class that is still there, used as before."""
    if _OF_ARRAYS.match(name) and any(isinstance(value, val.Tensor) for value in call.args):
        _note(call.interpreter, call.node, "TensorFlow functions of Keras tensors")
    if name == "keras.distribution.ModelParallel" and call.args:
        _note(call.interpreter, call.node, "ModelParallel with positional arguments")
    if name.startswith("keras.") and name.endswith(".save_model") and _lacks_ending(call.get(1, "filepath"), _MODELS):
        _note(call.interpreter, call.node, "Model.save without .keras")
    if kind_of(name) is Kind.LOADED and _lacks_ending(call.get(0, "filepath"), _MODELS):
        _note(call.interpreter, call.node, "load_model without .keras")
    if name.startswith("keras.") and name.endswith(".ModelCheckpoint") and not call.args[1:] and not call.spread:
        _note_checkpoint(call)


def _note_checkpoint(call: Call) -> None:
    path, weights = call.get(0, "filepath"), call.keywords.get("save_weights_only")
    if "period" in call.keywords or not (weights is None or isinstance(weights, val.Truth)):
        return
    only_weights = isinstance(weights, val.Truth) and weights.value
    if only_weights and _lacks_ending(path, _WEIGHTS):
        _note(call.interpreter, call.node, "ModelCheckpoint without .weights.h5")
    elif not only_weights and _lacks_ending(path, (".keras", ".h5")):
        _note(call.interpreter, call.node, "ModelCheckpoint without .keras")


def _lacks_ending(path: Value | None, endings: tuple[str, ...]) -> bool:
    """Whether a path certainly has none of the endings."""
    end = ending_of(path)
    unclear = isinstance(path, val.Given) and any(ending.endswith(end) for ending in endings)
    return bool(end) and not end.endswith(endings) and not unclear


_OWNERS: Mapping[type, str] = {
    val.Model: "Model", val.Strategy: "Strategy", val.Optimizer: "Optimizer", val.Metric: "Metric", val.Layer: "Layer"
}  # fmt: skip


def _removed(call: Call, receiver: Value, name: str) -> Iterator[str]:
    """Entries that a call of a method may be in. If the object is unknown, only Keras has such names and arguments."""
    if not val.is_unknown(receiver):
        owner = _OWNERS.get(type(receiver), "")
        yield from (f"{owner}.{name}", *(f"{owner}.{name}({key}=)" for key in call.keywords))
        if isinstance(receiver, val.Model):
            yield _saved(call, name)
        return
    if name in _KERAS_ONLY:
        yield from (f"{item}.{name}" for item in ("Strategy", "Model", "Optimizer"))
    if name == "reset_states" and _METRIC.search(ast.unparse(call.node.func).rpartition(".")[0]):
        yield "Metric.reset_states"
    yield from (f"Model.{name}({key}=)" for key in sorted(call.keywords.keys() & _ONLY_KERAS_LOADS))


def _saved(call: Call, name: str) -> str:
    """The entry of a call that saves or loads, if its path has a wrong ending."""
    path = call.get(0, "filepath")
    if name == "save_weights" and _lacks_ending(path, _WEIGHTS):
        return "Model.save_weights without .weights.h5"
    if name == "load_weights" and _lacks_ending(path, _MODELS):
        return "Model.load_weights without .weights.h5"
    return "Model.save without .keras" if name == "save" and _lacks_ending(path, _MODELS) else ""
