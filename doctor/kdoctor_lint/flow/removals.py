"""Notes what a script uses that newer releases of TensorFlow and Keras no longer have."""

import ast
import re
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet

from kdoctor_lint.edits import Cast, Fix, Method, Name
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
    "evaluate_generator", "experimental_make_numpy_dataset", "experimental_run", "experimental_run_v2", "fit_generator",
    "get_gradients", "make_dataset_iterator", "make_input_fn_iterator", "predict_classes", "predict_generator",
})  # fmt: skip
"""Methods that only Keras and TensorFlow have, so the receiver may be unknown."""
_METRIC = re.compile(r"loss|acc|metric|auc|iou|precision|recall|f1", re.IGNORECASE)
"""Names of metrics. Only those of Keras have ``reset_states``, but layers still have it."""
_ROOTS = ("keras.", "tensorflow.", "builtins.", "abc.", "typing.")
"""Modules whose classes define no method that Keras has removed."""
_ANY_NAME = ("__getattr__", "__getattribute__", "__dict__", "setattr", "vars")
"""Names in a class that may define any other."""
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
    if node.attr == "auto_shard" and isinstance(owner, val.Method) and owner.name == "experimental_distribute":
        _note(interpreter, node, "DistributeOptions.auto_shard", lambda: type(owner.receiver) is val.Object)
    if node.attr == "lr" and isinstance(owner, val.Optimizer):
        _note(interpreter, node, "Optimizer.lr", lambda: _lacks(owner, "lr"))
    elif node.attr == "lr" and _is_optimizer_of_model(node.value, owner):
        _note(interpreter, node, "Optimizer.lr", _guess)


def _is_optimizer_of_model(node: ast.expr, owner: Value) -> bool:
    """Whether this is ``model.optimizer``, as in callbacks. Only Keras has models with one optimizer."""
    if not isinstance(node, ast.Attribute) or node.attr != "optimizer" or not isinstance(owner, val.Method):
        return False
    name = getattr(node.value, "attr", None) or getattr(node.value, "id", "")
    return (type(owner.receiver) is Value or isinstance(owner.receiver, val.Foreign)) and name == "model"


def note_call(call: Call, callee: Value, env: Env) -> None:
    """A function, a class or a method is called."""
    if isinstance(callee, val.External):
        _note_external(call, callee.name)
    elif isinstance(callee, val.Method):
        _note_method(call, callee, env)


def _certain() -> bool:
    return True


def _guess() -> bool:
    return False


def _note(interpreter: Interpreter, node: ast.AST, name: str, certain: Callable[[], bool] = _certain) -> None:
    if not interpreter.tests_release and home_of(node) is None:
        removed = REMOVED[name]
        interpreter.trace.gone.append(Gone(node, removed, _fix(removed, node), certain))


def _lacks(value: Value, name: str) -> bool:
    """Whether an object is certainly of Keras or TensorFlow, and no class of the script gives it an attribute."""
    if not isinstance(value, val.Made | val.Strategy) or isinstance(value, val.Foreign):
        return value is val.NONE
    return not isinstance(value, val.Made) or all(
        isinstance(base, val.Class) or (isinstance(base, val.External) and base.name.startswith(_ROOTS))
        for cls in _related(value.cls)
        for base in ([val.UNKNOWN] if {name, *_ANY_NAME} & _words(cls.node) else cls.bases)
    )


def _related(cls: val.Class | None) -> Collection[val.Class]:
    """A class of the script, its bases, and the classes derived from it, of which an instance may be."""
    found: dict[int, val.Class] = {}
    for step in ("bases", "derived"):
        waiting = [cls]
        while waiting:
            item = waiting.pop()
            if isinstance(item, val.Class) and (id(item) not in found or item is cls):
                found[id(item)] = item
                waiting += [one for one in getattr(item, step) if one is not cls]
    return found.values()


def _words(node: ast.ClassDef) -> AbstractSet[str]:
    """What a class may define: names in it, attributes that it sets, and strings, as ``setattr`` has them."""
    words = set[str]()
    for part in ast.walk(node):
        if not isinstance(part, ast.Attribute) or isinstance(part.ctx, ast.Store) or part.attr == "__dict__":
            found = (getattr(part, key, None) for key in ("name", "id", "attr", "value"))
            words.update(word for word in found if isinstance(word, str))
    return words


def _kept(node: ast.expr, env: Env) -> Collection[Value]:
    """Every value that the outer name or the attribute gets from which an object is read."""
    if isinstance(node, ast.Name):
        return env.all_outer(node.id)
    owner = _held(node.value, env) if isinstance(node, ast.Attribute) else None
    related = _related(owner.cls) if isinstance(owner, val.Object) else ()
    return [value for cls in related for value in cls.assigned.get(getattr(node, "attr", ""), ())]


def _held(node: ast.expr, env: Env) -> Value:
    if isinstance(node, ast.Name):
        return env.get(node.id)
    owner = _held(node.value, env) if isinstance(node, ast.Attribute) else None
    held = owner.attributes.get(getattr(node, "attr", "")) if isinstance(owner, val.Object) else None
    return held or val.UNKNOWN


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


def _note_method(call: Call, callee: val.Method, env: Env) -> None:
    receiver, name, interpreter = callee.receiver, callee.name, call.interpreter
    if type(receiver) is Value or isinstance(receiver, val.Foreign):
        _note_guessed(call, name)
        return
    node, looped = call.node.func, interpreter.conditional

    def certain() -> bool:
        """Decided at the end, when all assignments and all derived classes are known."""
        kept = [] if not isinstance(node, ast.Attribute) else _kept(node.value, env)
        if looped and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            kept = [*kept, *env.assigned.get(node.value.id, ())]
        return name not in interpreter.patched and all(_lacks(value, name) for value in (receiver, *kept))

    owner = _OWNERS.get(type(receiver), "")
    for form in (f"{owner}.{name}", *(f"{owner}.{name}({key}=)" for key in call.keywords)):
        if form in REMOVED:
            _note(interpreter, call.node, form, certain)
    form = _saved(call, name) if isinstance(receiver, val.Model) else ""
    if form:
        _note(interpreter, call.node, form, certain)


def _note_guessed(call: Call, name: str) -> None:
    """A method of an unknown object, whose name or arguments only Keras has."""
    forms = [f"Model.{name}({key}=)" for key in sorted(call.keywords.keys() & _ONLY_KERAS_LOADS)]
    if name in _KERAS_ONLY:
        forms += [f"{item}.{name}" for item in ("Strategy", "Model", "Optimizer")]
    if name == "reset_states" and _METRIC.search(ast.unparse(call.node.func).rpartition(".")[0]):
        forms.append("Metric.reset_states")
    for form in forms:
        if form in REMOVED:
            _note(call.interpreter, call.node, form, _guess)


def _saved(call: Call, name: str) -> str:
    """The entry of a call that saves or loads, if its path has a wrong ending."""
    path = call.get(0, "filepath")
    if name == "save_weights" and _lacks_ending(path, _WEIGHTS):
        return "Model.save_weights without .weights.h5"
    if name == "load_weights" and _lacks_ending(path, _MODELS):
        return "Model.load_weights without .weights.h5"
    return "Model.save without .keras" if name == "save" and _lacks_ending(path, _MODELS) else ""
