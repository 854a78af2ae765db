"""Notes what a script uses that newer releases of TensorFlow and Keras no longer have."""

from __future__ import annotations

import ast

from kdoctor_lint.flow.call import Call
from kdoctor_lint.flow.interpreter import Interpreter
from kdoctor_lint.flow.trace import Gone
from kdoctor_lint.flow.values import External, Method, Model, Strategy, Text, Truth, Value
from kdoctor_lint.names import Kind, kind_of
from kdoctor_lint.removed import REMOVED, removed_in

_KERAS_ONLY = frozenset({
    "evaluate_generator", "experimental_make_numpy_dataset", "experimental_run_v2", "fit_generator",
    "predict_generator",
})  # fmt: skip
"""Methods that only Keras and TensorFlow have, so the receiver may be unknown."""
_INTERNAL = ("keras.src.", "tensorflow.python.")


def note_name(interpreter: Interpreter, node: ast.AST, name: str) -> None:
    """A name of another module is used as ``module.name``."""
    if name in REMOVED:
        _note(interpreter, node, name)


def note_import(interpreter: Interpreter, node: ast.AST, module: str, name: str) -> None:
    """A name is imported from a module. The names of internal modules differ from public ones."""
    found = None if module.startswith(_INTERNAL) else removed_in(name)
    if found is not None:
        _note(interpreter, node, found.name)


def note_call(call: Call, callee: Value) -> None:
    """A function, a class or a method is called."""
    if isinstance(callee, External):
        _note_external(call, callee.name)
    elif isinstance(callee, Method):
        _note_method(call, callee)


def _note(interpreter: Interpreter, node: ast.AST, name: str) -> None:
    if not interpreter.guarded:
        interpreter.trace.gone.append(Gone(node, REMOVED[name]))


def _note_external(call: Call, name: str) -> None:
    kind, short = kind_of(name), name.rpartition(".")[2]
    if kind is Kind.OPTIMIZER and name.startswith("keras.") and "lr" in call.keywords:
        _note(call.interpreter, call.node, "Optimizer(lr=)")
    elif kind is Kind.CALLBACK:
        for key in call.keywords:
            if f"{short}({key}=)" in REMOVED:
                _note(call.interpreter, call.node, f"{short}({key}=)")
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


def _note_method(call: Call, callee: Method) -> None:
    receiver, name = callee.receiver, callee.name
    if type(receiver) is Value:
        if name in _KERAS_ONLY:
            owner = "Strategy" if name.startswith("experimental_") else "Model"
            _note(call.interpreter, call.node, f"{owner}.{name}")
    elif isinstance(receiver, Model | Strategy):
        owner = "Model" if isinstance(receiver, Model) else "Strategy"
        forms = [f"{owner}.{name}", *(f"{owner}.{name}({key}=)" for key in call.keywords)]
        for form in forms:
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
