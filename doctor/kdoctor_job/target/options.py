"""Options of ``compile`` and of the optimizer that Keras implements separately for several replicas."""

from __future__ import annotations

import contextlib
import sys
import threading
from functools import partial
from typing import Any, Callable, Collection, Dict, Iterator, List, Mapping, NamedTuple

import tensorflow as tf

from kdoctor_job.target.layers import layers_of
from kdoctor_job.target.model import CLIPPING, steps_per_execution
from kdoctor_job.target.parts import is_own_class, keras_of
from kdoctor_job.target.states import is_seed

TOGETHER = "steps_per_execution"
BUILT_LATE = "optimizer built late"
"""A custom ``train_step`` whose first step builds the optimizer. Without this option, it is built before."""
GRADIENTS = "changed gradients"
"""What an own ``train_step`` or optimizer does with those of a replica. Without this option, they are added up as the
tapes give them."""
NO_CALL = "model without call"
"""Keras 3 calls a model before its first step on replicas. Without this option, only its optimizer is built then."""
STATE = "state of layers"
"""Variables that the job's own layers and ``train_step`` assign. Without this option, they keep their values."""
SPARSE = "sparse gradients"
"""Gradients that list rows of a weight, as those of an Embedding. Without this option, they are whole matrices."""
UNSET = (BUILT_LATE, STATE, GRADIENTS, SPARSE)
"""Options that no argument sets. They are tried where the weights differ, and said if they are the cause."""
CLIPS = "clipping"
_MASKS = "masks"
"""Layers and losses that mask tokens. Without this option, the loss is the mean over all tokens."""
_LOSSES = "added losses"
"""Layers that add to the loss, with synchronized BatchNormalization. Without this option, each replica has its own."""
_OBJECTS = "loss objects of layers"
"""Losses that layers add with a loss object of Keras. Without this option, they are divided by the replicas once."""
OF_MODEL = (_MASKS, _LOSSES, _OBJECTS)
"""Options that are removed from the model, not from the arguments of ``compile``."""
_SCALES = "loss scaling"
_ASSIGNS = ("assign", "assign_add", "assign_sub")
_GET_GRADIENTS = ("train_step", "apply", "apply_gradients")
_OF_OPTIMIZER = {
    "gradient_accumulation_steps": ("gradient_accumulation_steps",),
    CLIPS: CLIPPING,
    "use_ema": ("use_ema",),
    "weight_decay": ("weight_decay",),
}
"""Options to the attributes of an optimizer that turn them on."""


class Option(NamedTuple):
    """One option that the job uses."""

    name: str
    value: str


def options_of(model: Any) -> List[Option]:
    """The options that the compiled model uses."""
    found = []
    if getattr(model, "jit_compile", getattr(model, "_jit_compile", None)) is True:
        found.append(Option("jit_compile", "jit_compile=True"))
    if getattr(model, "run_eagerly", False) is True:
        found.append(Option("run_eagerly", "run_eagerly=True"))
    together = steps_per_execution(model)
    if together and together > 1:
        found.append(Option(TOGETHER, f"{TOGETHER}={together}"))
    found += [Option(name, ", ".join(used)) for name, used in _of_layers(model).items() if used]
    optimizer = getattr(model, "optimizer", None)
    if hasattr(optimizer, "inner_optimizer"):
        found.append(Option(_SCALES, type(optimizer).__name__))
    for name, attributes in _OF_OPTIMIZER.items():
        given = [_written(one, label) for one in optimizers_of(optimizer) for label in attributes if _is_on(one, label)]
        if given:
            found.append(Option(name, ", ".join(given)))
    return found


def _of_layers(model: Any) -> Dict[str, List[str]]:
    """What uses each of the options that are in layers."""
    layers = layers_of(model)
    adding = [layer for layer in layers if _adds_loss(layer)]
    synchronized = any(getattr(layer, "synchronized", False) for layer in layers)
    return {
        _MASKS: [*(layer.name for layer in layers if _masks(layer)), *_ignoring(model)],
        _LOSSES: [layer.name for layer in adding if synchronized],
        _OBJECTS: [f"{layer.name}.{name}" for layer in adding for name in _loss_objects(model, layer)],
    }


def optimizers_of(optimizer: Any) -> List[Any]:
    """The optimizer, and the one that it wraps."""
    inner = getattr(optimizer, "inner_optimizer", None)
    return [one for one in (optimizer, inner) if one is not None]


def optimizers_in(keras: Any, made: Any) -> Dict[str, Any]:
    """The model's optimizers, by the names of its attributes."""
    found = {name: getattr(made, name, None) for name in [*vars(made), "optimizer"]}
    return {name: value for name, value in found.items() if isinstance(value, keras.optimizers.Optimizer)}


def places_built(model: Any) -> Dict[str, List[int]]:
    """The places among the trainable variables of those that an optimizer was built with, by its attribute."""
    places = {id(one): place for place, one in enumerate(model.trainable_variables)}
    updated = {
        name: [places.get(id(one)) for one in getattr(optimizer, "_trainable_variables", ())]
        for name, optimizer in optimizers_in(keras_of(model), model).items()
    }
    return {name: [place for place in found if place is not None] for name, found in updated.items() if found}


def build_optimizers(model: Any, places: Mapping[str, List[int]]) -> None:
    """Build the optimizers of a copy with these variables, unless they are built."""
    for name, of_optimizer in places.items():
        optimizer = getattr(model, name, None)
        if optimizer is not None and not optimizer.built:
            optimizer.build([model.trainable_variables[place] for place in of_optimizer])


def remove(arguments: Dict[str, Any], without: Collection[str]) -> None:
    """Remove options from the arguments of ``compile``. Their optimizer must be new and not built."""
    if "jit_compile" in without:
        arguments["jit_compile"] = False
    if "run_eagerly" in without:
        arguments["run_eagerly"] = False
    optimizer = arguments["optimizer"]
    if _SCALES in without and hasattr(optimizer, "inner_optimizer"):
        optimizer = arguments["optimizer"] = optimizer.inner_optimizer
    for name in without:
        for attribute in _OF_OPTIMIZER.get(name, ()):
            for one in optimizers_of(optimizer):
                if _is_on(one, attribute):
                    setattr(one, attribute, False if attribute == "use_ema" else None)


def remove_from_model(model: Any, without: Collection[str]) -> None:
    """Remove options from a copy of the model that is not compiled: masks in the loss, losses of other replicas."""
    if _LOSSES in without:
        separate_losses(model)
    if _OBJECTS in without:
        _divide_once(model)
    if _MASKS in without:
        _count_masked(model)
    if GRADIENTS in without:
        _pass_gradients_on(model)
    if STATE in without:
        _hold_state(model)
    if SPARSE in without:
        for optimizer in _applying(model):
            _change_gradients(optimizer, _dense)
    if NO_CALL in without:
        _build_optimizer_only(model)


def own_state(model: Any) -> Dict[str, Any]:
    """The variables that are not weights and belong to the job's own model, layers or losses, by their names."""
    found = {}
    for part in (model, *layers_of(model), *tf.nest.flatten(getattr(model, "loss", None))):
        kept = [getattr(part, name, ()) for name in ("_non_trainable_variables", "_non_trainable_weights")]
        if is_own_class(type(part)):
            variables = [one for ones in (*kept, _attributes(part)) for one in ones]
            names = {str(getattr(one, "path", one.name)): one for one in variables}
            found.update({name: one for name, one in names.items() if not is_seed(name)})
    return found


def _attributes(part: Any) -> List[Any]:
    """The variables among its attributes. Keras 3 does not know those of TensorFlow, and those of losses."""
    values = [
        value if isinstance(value, (list, tuple)) else [value] for value in getattr(part, "__dict__", {}).values()
    ]
    return [one for ones in values for one in ones if hasattr(one, "assign") and not getattr(one, "trainable", True)]


def _hold(model: Any) -> List[Any]:
    held = list(own_state(model).values())
    for one in held:
        for name in _ASSIGNS:
            object.__setattr__(one, name, lambda *_, one=one, **__: one)
    return held


@contextlib.contextmanager
def state_held(model: Any) -> Iterator[None]:
    """Let the variables of :func:`own_state` keep their values, whatever is assigned."""
    held = _hold(model)
    try:
        yield
    finally:
        for one in held:
            for name in _ASSIGNS:
                vars(one).pop(name, None)


def _hold_state(model: Any) -> None:
    step = model.train_step

    def holding(data: Any) -> Any:
        _hold(model)  # and for ever, because replicas take turns in a step
        return step(data)

    model.train_step = holding


def _build_optimizer_only(model: Any) -> None:
    def build(**_: Any) -> None:
        optimizer = getattr(model, "optimizer", None)
        if optimizer is not None and not optimizer.built:
            with model.distribute_strategy.scope():
                optimizer.build(model.trainable_variables)

    object.__setattr__(model, "_maybe_symbolic_build", build)


def _count_masked(model: Any) -> None:
    compute_loss = model.compute_loss
    losses: Any = sys.modules[keras_of(model).losses.Loss.__module__]

    def of_all_tokens(x: Any = None, y: Any = None, y_pred: Any = None, *others: Any, **named: Any) -> Any:
        for output in tf.nest.flatten(y_pred):
            vars(output).pop("_keras_mask", None)
        reduce = getattr(losses, "reduce_weighted_values", None)
        if reduce is None:
            return compute_loss(x, y, y_pred, *others, **named)
        losses.reduce_weighted_values = lambda *values, **how: reduce(*values, **dict(how, mask=None))  # ignore_class
        try:
            return compute_loss(x, y, y_pred, *others, **named)
        finally:
            losses.reduce_weighted_values = reduce

    object.__setattr__(model, "compute_loss", of_all_tokens)


class _OfTapes(threading.local):
    """The gradients that the tapes gave a replica in this step, by the variable."""

    def __init__(self) -> None:
        self.by_variable: Dict[int, Any] = {}


class _Tapes:
    """Has all tapes record what they give, while a step of any replica is traced. Their threads take turns."""

    def __init__(self) -> None:
        self.given = _OfTapes()
        self._steps = 0
        self._gradient = tf.GradientTape.gradient

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Record until the step ends."""
        self.given.by_variable = {}

        def recording(tape: Any, target: Any, sources: Any, *others: Any, **named: Any) -> Any:
            found = self._gradient(tape, target, sources, *others, **named)
            self.given.by_variable.update(zip(map(id, tf.nest.flatten(sources)), tf.nest.flatten(found)))
            return found

        self._steps += 1
        tf.GradientTape.gradient = recording
        try:
            yield
        finally:
            self._steps -= 1
            if not self._steps:
                tf.GradientTape.gradient = self._gradient


def _pass_gradients_on(model: Any) -> None:
    step, tapes, changed = model.train_step, _Tapes(), set()

    def with_given_gradients(data: Any) -> Any:
        for optimizer in _applying(model):
            if id(optimizer) not in changed:
                changed.add(id(optimizer))
                _apply_given(optimizer, tapes.given)
        with tapes.recorded():
            return step(data)

    model.train_step = with_given_gradients


def changing_gradients(model: Any) -> List[str]:
    """The job's own functions that get the gradients of a replica, before those of all are added up."""
    kinds = dict.fromkeys(
        kind for part in (model, *_applying(model)) for kind in type(part).__mro__ if is_own_class(kind)
    )
    return [f"{kind.__name__}.{name}" for kind in kinds for name in _GET_GRADIENTS if name in vars(kind)]


def _apply_given(optimizer: Any, given: _OfTapes) -> None:
    if is_own_class(type(optimizer)):
        of_keras: Any = next(kind for kind in type(optimizer).__mro__ if not is_own_class(kind))
        object.__setattr__(optimizer, "apply", partial(of_keras.apply, optimizer))
    _change_gradients(optimizer, lambda gradient, variable: given.by_variable.get(id(variable), gradient))


def watch_sparse(model: Any) -> Callable[[], List[str]]:
    """Have the gradients watched that optimizers of Keras 3 apply; the function names the variables of sparse ones."""
    found: Dict[str, None] = {}

    def watched(gradient: Any, variable: Any) -> Any:
        if isinstance(gradient, tf.IndexedSlices):
            found[str(getattr(variable, "path", variable.name))] = None
        return gradient

    for optimizer in _applying(model):
        _change_gradients(optimizer, watched)
    return lambda: list(found)


def _applying(model: Any) -> List[Any]:
    """The model's optimizers of Keras 3. Those of Keras 2 add up the gradients before they change them."""
    return [one for one in optimizers_in(keras_of(model), model).values() if hasattr(one, "apply")]


def _dense(gradient: Any, _: Any) -> Any:
    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient


def _change_gradients(optimizer: Any, change: Callable[[Any, Any], Any]) -> None:
    apply = optimizer.apply

    def changed(gradients: Any, variables: Any = None) -> Any:
        of = optimizer._trainable_variables if variables is None else variables  # noqa: SLF001 - as apply does
        return apply([change(*pair) for pair in zip(gradients, of)], variables)

    object.__setattr__(optimizer, "apply", changed)


def _adds_loss(layer: Any) -> bool:
    """Whether a layer of Keras 3 adds to the loss. What a function does that it calls is not seen."""
    code = getattr(type(layer).call, "__code__", None)
    adds = getattr(layer, "activity_regularizer", None) is not None or "add_loss" in getattr(code, "co_names", ())
    return adds and hasattr(layer, "_get_own_losses")


def _loss_objects(model: Any, layer: Any) -> Dict[str, Any]:
    loss = keras_of(model).losses.Loss
    return {name: value for name, value in vars(layer).items() if isinstance(value, loss)}


def _divide_once(model: Any) -> None:
    for layer in layers_of(model):
        for name, loss in _loss_objects(model, layer).items():

            def undivided(*arguments: Any, loss: Any = loss, **named: Any) -> Any:
                return loss(*arguments, **named) * tf.distribute.get_strategy().num_replicas_in_sync

            object.__setattr__(layer, name, undivided)


def separate_losses(model: Any) -> None:
    """Keep what layers add to the loss by replica, where Keras 3 has one list."""
    for layer in (model, *layers_of(model)):
        if hasattr(layer, "_get_own_losses"):
            object.__setattr__(layer, "_losses", _LossesOfThread())


class _LossesOfThread(threading.local):
    """What a layer adds to the loss of a replica. Keras mixes them if BatchNormalization waits for other replicas."""

    def __init__(self) -> None:
        self._kept: List[Any] = []
        self.extend, self.clear = self._kept.extend, self._kept.clear

    def __getitem__(self, place: Any) -> Any:
        return self._kept[place]


def _masks(layer: Any) -> bool:
    """Whether it makes a mask: a layer of Keras that does, or one of another class that says how."""
    own = getattr(type(layer), "compute_mask", None)
    is_own = own is not None and not str(own.__module__).startswith(("keras.", "tf_keras."))
    return bool(getattr(layer, "mask_zero", False)) or type(layer).__name__ == "Masking" or is_own


def _ignoring(model: Any) -> List[str]:
    """The losses that leave out a class, which they mask."""
    ignored = [getattr(loss, "ignore_class", None) for loss in tf.nest.flatten(getattr(model, "loss", None))]
    return [f"ignore_class={value}" for value in ignored if value is not None]


def _is_on(optimizer: Any, attribute: str) -> bool:
    value = getattr(optimizer, attribute, None)
    return isinstance(value, (bool, int, float)) and bool(value)


def _written(optimizer: Any, attribute: str) -> str:
    value = getattr(optimizer, attribute)
    return f"{attribute}={value}" if isinstance(value, bool) else f"{attribute}={float(value):g}"
