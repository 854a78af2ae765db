"""Notes what a script uses that newer releases of TensorFlow and Keras no longer have."""

import ast
import re
from collections.abc import Mapping

from kdoctor_lint.edits import Cast, Fix, Method, Name
from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.call import Call
from kdoctor_lint.flow.interpreter import Interpreter
from kdoctor_lint.flow.texts import ending_of
from kdoctor_lint.flow.trace import Gone, home_of
from kdoctor_lint.flow.values import Value
from kdoctor_lint.names import Kind, kind_of
from kdoctor_lint.removed import REMOVED, Removed, removed_in

_KERAS_ONLY = frozenset({
    "evaluate_generator", "experimental_make_numpy_dataset", "experimental_run", "experimental_run_v2", "fit_generator",
    "get_gradients", "make_dataset_iterator", "make_input_fn_iterator", "predict_classes", "predict_generator",
})  # fmt: skip
"""Methods that only Keras and TensorFlow have, so the receiver may be unknown."""
_METRIC = re.compile(r"loss|acc|metric|auc|iou|precision|recall|f1", re.IGNORECASE)
"""Names of metrics. Only those of Keras have ``reset_states``, but layers still have it."""
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


def note_import(
    interpreter: Interpreter, node: ast.alias, module: str, name: str, holder: ast.ImportFrom | None = None
) -> None:
    """A name is imported from a module. The names of internal modules differ from public ones."""
    found = removed_in(name) or REMOVED.get(f"from {module} import {node.name}") or removed_in(module.partition(".")[0])
    if found is None or module.startswith(_INTERNAL) or interpreter.tests_release or home_of(node) is not None:
        return
    imported = found.edit.imported(holder, node) if isinstance(found.edit, Name) and holder is not None else None
    fix = Fix(imported, node, found.safe) if imported is not None else None
    interpreter.trace.gone.append(Gone(node, found, fix))


def note_attribute(interpreter: Interpreter, node: ast.Attribute, owner: Value) -> None:
    """An attribute of an object is used, such as ``optimizer.lr``."""
    if node.attr == "auto_shard" and getattr(node.value, "attr", "") == "experimental_distribute":
        _note(interpreter, node, "DistributeOptions.auto_shard", by_name=True)
    if node.attr == "lr" and isinstance(owner, val.Optimizer):
        _note(interpreter, node, "Optimizer.lr")
    elif node.attr == "lr" and _is_optimizer_of_model(node.value, owner):
        _note(interpreter, node, "Optimizer.lr", by_name=True)


def _is_optimizer_of_model(node: ast.expr, owner: Value) -> bool:
    """Whether this is ``model.optimizer``, as in callbacks. Only Keras has models with one optimizer."""
    if not isinstance(node, ast.Attribute) or node.attr != "optimizer" or not isinstance(owner, val.Method):
        return False
    name = getattr(node.value, "attr", None) or getattr(node.value, "id", "")
    return (type(owner.receiver) is Value or isinstance(owner.receiver, val.Foreign)) and name == "model"


def note_call(call: Call, callee: Value) -> None:
    """A function, a class or a method is called."""
    if isinstance(callee, val.External):
        _note_external(call, callee.name)
    elif isinstance(callee, val.Method):
        _note_method(call, callee)


def _note(interpreter: Interpreter, node: ast.AST, name: str, *, by_name: bool = False) -> None:
    """Note a use, with a fix unless only the name of the method or attribute says whose it is."""
    if not interpreter.tests_release and home_of(node) is None:
        removed = REMOVED[name]
        interpreter.trace.gone.append(Gone(node, removed, None if by_name else _fix(removed, node)))


def _fix(removed: Removed, node: ast.AST) -> Fix | None:
    edit = removed.edit
    if edit is None or not edit.fits(node):
        return None
    return Fix(edit, node, edit.is_lossless(node) if isinstance(edit, Method) else removed.safe)


def _note_external(call: Call, name: str) -> None:
    kind, short = kind_of(name), name.rpartition(".")[2]
    if name in REMOVED and isinstance(REMOVED[name].edit, Cast):
        gone = call.interpreter.trace.gone
        for number, entry in enumerate(gone):
            if entry.node is call.node.func:
                gone[number] = entry._replace(fix=_fix(entry.removed, call.node))
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
    if kind_of(name) is Kind.LOADED and _lacks(call.get(0, "filepath"), _MODELS):
        _note(call.interpreter, call.node, "load_model without .keras")
    if name.startswith("keras.") and name.endswith(".ModelCheckpoint") and not call.args[1:] and not call.spread:
        _note_checkpoint(call)


def _note_checkpoint(call: Call) -> None:
    path, weights = call.get(0, "filepath"), call.keywords.get("save_weights_only")
    if "period" in call.keywords or not (weights is None or isinstance(weights, val.Truth)):
        return
    only_weights = isinstance(weights, val.Truth) and weights.value
    if only_weights and _lacks(path, _WEIGHTS):
        _note(call.interpreter, call.node, "ModelCheckpoint without .weights.h5")
    elif not only_weights and _lacks(path, (".keras", ".h5")):
        _note(call.interpreter, call.node, "ModelCheckpoint without .keras")


def _lacks(path: Value | None, endings: tuple[str, ...]) -> bool:
    """Whether a path certainly has none of the endings."""
    end = ending_of(path)
    unclear = isinstance(path, val.Given) and any(ending.endswith(end) for ending in endings)
    return bool(end) and not end.endswith(endings) and not unclear


_OWNERS: Mapping[type, str] = {
    val.Model: "Model", val.Strategy: "Strategy", val.Optimizer: "Optimizer", val.Metric: "Metric", val.Layer: "Layer"
}  # fmt: skip


def _note_method(call: Call, callee: val.Method) -> None:
    receiver, name = callee.receiver, callee.name
    if type(receiver) is Value or isinstance(receiver, val.Foreign):
        if name in _KERAS_ONLY:
            owners = (f"{item}.{name}" for item in ("Strategy", "Model", "Optimizer"))
            _note(call.interpreter, call.node, next(item for item in owners if item in REMOVED), by_name=True)
        if name == "reset_states" and _METRIC.search(ast.unparse(call.node.func).rpartition(".")[0]):
            _note(call.interpreter, call.node, "Metric.reset_states", by_name=True)
        for key in sorted(call.keywords.keys() & _ONLY_KERAS_LOADS):
            if f"Model.{name}({key}=)" in REMOVED:
                _note(call.interpreter, call.node, f"Model.{name}({key}=)", by_name=True)
        return
    owner = _OWNERS.get(type(receiver), "")
    for form in (f"{owner}.{name}", *(f"{owner}.{name}({key}=)" for key in call.keywords)):
        if form in REMOVED:
            _note(call.interpreter, call.node, form)
    if isinstance(receiver, val.Model):
        _note_saved(call, name)


def _note_saved(call: Call, name: str) -> None:
    path = call.get(0, "filepath")
    if name == "save_weights" and _lacks(path, _WEIGHTS):
        _note(call.interpreter, call.node, "Model.save_weights without .weights.h5")
    elif name == "load_weights" and _lacks(path, _MODELS):
        _note(call.interpreter, call.node, "Model.load_weights without .weights.h5")
    elif name == "save" and _lacks(path, _MODELS):
        _note(call.interpreter, call.node, "Model.save without .keras")
