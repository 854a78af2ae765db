"""Notes what a script uses that newer releases of TensorFlow and Keras no longer have."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from kdoctor_lint.edits import Cast, Fix, Method, Name
from kdoctor_lint.flow.call import Call
from kdoctor_lint.flow.interpreter import Interpreter
from kdoctor_lint.flow.trace import Gone, home_of
from kdoctor_lint.flow.values import (
    External,
    Layer,
    Metric,
    Model,
    Optimizer,
    Strategy,
    Text,
    Truth,
    Value,
)
from kdoctor_lint.flow.values import (
    Method as Bound,
)
from kdoctor_lint.names import Kind, kind_of
from kdoctor_lint.removed import REMOVED, Removed, removed_in

_KERAS_ONLY = frozenset({
    "evaluate_generator", "experimental_make_numpy_dataset", "experimental_run_v2", "fit_generator",
    "predict_classes",
    "predict_generator",
})  # fmt: skip
"""Methods that only Keras and TensorFlow have, so the receiver may be unknown."""
_INTERNAL = ("keras.src.", "tensorflow.python.")


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
    found = None if module.startswith(_INTERNAL) else removed_in(name)
    if found is None or interpreter.guarded or home_of(node) is not None:
        return
    imported = found.edit.imported(holder, node) if isinstance(found.edit, Name) and holder is not None else None
    fix = Fix(imported, node, found.safe) if imported is not None else None
    interpreter.trace.gone.append(Gone(node, found, fix))


def note_attribute(interpreter: Interpreter, node: ast.Attribute, owner: Value) -> None:
    """An attribute of an object is used, such as ``optimizer.lr``."""
    if node.attr == "lr" and (isinstance(owner, Optimizer) or _is_optimizer_of_model(node.value, owner)):
        _note(interpreter, node, "Optimizer.lr")


def _is_optimizer_of_model(node: ast.expr, owner: Value) -> bool:
    """Whether this is ``model.optimizer``, as in callbacks. Only Keras has models with one optimizer."""
    if not isinstance(node, ast.Attribute) or node.attr != "optimizer" or not isinstance(owner, Bound):
        return False
    name = getattr(node.value, "attr", None) or getattr(node.value, "id", "")
    return isinstance(owner.receiver, Model) or (type(owner.receiver) is Value and name == "model")


def note_call(call: Call, callee: Value) -> None:
    """A function, a class or a method is called."""
    if isinstance(callee, External):
        _note_external(call, callee.name)
    elif isinstance(callee, Bound):
        _note_method(call, callee)


def _note(interpreter: Interpreter, node: ast.AST, name: str) -> None:
    if not interpreter.guarded and home_of(node) is None:
        removed = REMOVED[name]
        interpreter.trace.gone.append(Gone(node, removed, _fix(removed, node)))


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
    if not name.startswith("keras."):
        return
    owners = {Kind.OPTIMIZER: ("Optimizer",), Kind.LAYER: ("Layer", short), Kind.CALLBACK: (short,)}
    for owner in owners.get(kind, ()):
        for key in call.keywords:
            if f"{owner}({key}=)" in REMOVED:
                _note(call.interpreter, call.node, f"{owner}({key}=)")
    if short == "ModelCheckpoint" and not call.args[1:] and not call.spread:
        _note_checkpoint(call)


def _note_checkpoint(call: Call) -> None:
    path, weights = call.get(0, "filepath"), call.keywords.get("save_weights_only")
    if not isinstance(path, Text) or "period" in call.keywords:
        return
    if weights is None or isinstance(weights, Truth):
        only_weights = isinstance(weights, Truth) and weights.value
        if only_weights and not path.value.endswith(".weights.h5"):
            _note(call.interpreter, call.node, "ModelCheckpoint without .weights.h5")
        elif not only_weights and not path.value.endswith((".keras", ".h5")):
            _note(call.interpreter, call.node, "ModelCheckpoint without .keras")


_OWNERS: Mapping[type, str] = {
    Model: "Model", Strategy: "Strategy", Optimizer: "Optimizer", Metric: "Metric", Layer: "Layer"
}  # fmt: skip


def _note_method(call: Call, callee: Bound) -> None:
    receiver, name = callee.receiver, callee.name
    if type(receiver) is Value:
        if name in _KERAS_ONLY:
            owner = "Strategy" if name.startswith("experimental_") else "Model"
            _note(call.interpreter, call.node, f"{owner}.{name}")
        return
    owner = _OWNERS.get(type(receiver), "")
    for form in (f"{owner}.{name}", *(f"{owner}.{name}({key}=)" for key in call.keywords)):
        if form in REMOVED:
            _note(call.interpreter, call.node, form)
    if isinstance(receiver, Model) and name in {"save", "save_weights"}:
        _note_saved(call, name)


def _note_saved(call: Call, name: str) -> None:
    path = call.get(0, "filepath")
    if not isinstance(path, Text):
        return
    if name == "save_weights" and not path.value.endswith(".weights.h5"):
        _note(call.interpreter, call.node, "Model.save_weights without .weights.h5")
    elif name == "save" and not path.value.endswith((".keras", ".h5", ".hdf5")):
        _note(call.interpreter, call.node, "Model.save without .keras")
