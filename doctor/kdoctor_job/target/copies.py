"""Copies of the job's model, so that the model itself is never trained."""

from __future__ import annotations

import inspect
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from kdoctor_job.target import cloning
from kdoctor_job.target.layers import layers_of, normalisations, random_layers
from kdoctor_job.target.model import raw_compile
from kdoctor_job.target.options import (
    BUILT_LATE,
    NO_CALL,
    OF_MODEL,
    TOGETHER,
    UNSET,
    optimizers_in,
    remove,
    remove_from_model,
    separate_losses,
)
from kdoctor_job.target.own_fit import as_keras_gets
from kdoctor_job.target.parts import describe, keras_of
from kdoctor_job.target.random_numbers import seed_numpy


class NotBuiltError(cloning.CopyError):
    """A copy cannot be built with a batch. ``fit`` may do so in another way."""


COMPARING_RATE = 0.01
"""Learning rate of SGD; the result is relative to how far the weights move."""


class Setup(NamedTuple):
    """What a copy has of the job."""

    own: bool = True
    """The job's optimizer; if false, SGD without options, whose steps are proportional to the gradient."""
    without: Tuple[str, ...] = ()
    """Options that are removed, see ``options``."""
    still: bool = False
    """Random layers run as at inference, and BatchNormalization is synchronized: see :func:`make_comparable`."""
    one_device: bool = False
    """XLA is off, because Keras turns it off for several replicas; and one step is executed at a time."""
    precise: bool = False
    """It computes in float64, where a difference in float32 may be rounding."""


class Copier:
    """Makes copies of one model."""

    def __init__(self, model: Any, steps: int, *, is_trained: bool = False) -> None:
        """Copy the model, which ``fit`` builds if it ``is_trained``."""
        self.model = model
        self._steps = steps
        self._is_trained = is_trained
        # Only then: weights of a Sequential of tf_keras that is not built raise an error.
        is_built = is_trained or ((model.built or all(layer.built for layer in layers_of(model))) and model.weights)
        self.weights: Optional[List[Any]] = model.get_weights() if is_built else None
        """The weights that each copy starts with; None before the first copy of a model that is not built."""
        self.drawn: Dict[int, str] = {}
        """The layers that were found to draw random numbers, see :func:`kdoctor_job.target.masks.find_drawing`."""
        self.drawing: Tuple[int, ...] = ()
        """Places in :func:`layers_of` of those that run as at inference, besides ``random_layers``."""

    def name_of(self, place: int) -> str:
        """The name of the layer at this place in the job's model, or its number if the model has fewer."""
        layers = layers_of(self.model)
        return str(layers[place].name) if place < len(layers) else f"layer {place + 1}"

    def copy(self, batch: Any, setup: Setup) -> Any:
        """A compiled copy with the model's weights, made in the current scope.

        Args:
            batch: an element of the data, to build a copy that is not built.
            setup: what it has of the job.

        Raises:
            CopyError: the model cannot be copied.
        """
        made = self.make()
        seen = as_keras_gets(made, batch)
        if not (self._is_trained or (made.built and made.weights and all(part.built for part in layers_of(made)))):
            _build(made, seen)  # which may make layers
        if setup.still:
            make_comparable(made, self.drawing)
            seed_numpy(made)
        remove_from_model(made, setup.without)
        self._compile(made, setup)
        if self.weights is None or len(self.weights) < len(made.weights):  # the others come with the first batch
            self.weights = made.get_weights()
        made.set_weights(self.weights)
        if BUILT_LATE in setup.without:
            for optimizer in optimizers_in(keras_of(made), made).values():
                optimizer.build(made.trainable_variables)
        return made

    def make(self) -> Any:
        """A copy as the job has the model, made in the current scope."""
        try:
            return cloning.clone(keras_of(self.model), self.model)
        except Exception as error:
            raise cloning.CopyError(f"the model cannot be copied: {describe(error)}") from error

    def _compile(self, made: Any, setup: Setup) -> None:
        keras = keras_of(made)
        removed = [name for name in setup.without if name not in (*UNSET, NO_CALL, *OF_MODEL)]
        if type(made).compile is not keras.Model.compile and not (removed and setup.own):
            if not setup.own:
                _replace_optimizers(keras, made)
            return
        arguments = raw_compile(made)
        if arguments is None:
            raise cloning.CopyError(f"its class overrides compile(), so {', '.join(removed)} cannot be removed")
        arguments["optimizer"] = made.optimizer if setup.own else keras.optimizers.SGD(COMPARING_RATE)
        if setup.own:
            remove(arguments, setup.without)
        if setup.own and "auto_scale_loss" in inspect.signature(keras.Model.compile).parameters:
            arguments["auto_scale_loss"] = False  # the model's optimizer is wrapped already
        alone = setup.one_device or not setup.own or TOGETHER in setup.without
        steps = 1 if alone else min(arguments.get("steps_per_execution") or 1, self._steps)
        arguments["steps_per_execution"] = steps
        if setup.one_device or arguments.get("jit_compile") is not True:
            arguments["jit_compile"] = False
        keras.Model.compile(made, **arguments)  # a class may override it with other arguments


def _replace_optimizers(keras: Any, made: Any) -> None:
    for name in optimizers_in(keras, made):
        setattr(made, name, keras.optimizers.SGD(COMPARING_RATE))


def _build(made: Any, batch: Any) -> None:
    inputs = batch[0] if isinstance(batch, tuple) else batch
    if type(made).call is keras_of(made).Model.call and made.weights and all(part.built for part in layers_of(made)):
        return  # its train_step calls its parts, as those of a GAN; a call of the model would count as a build
    try:
        made(inputs)
    except Exception as error:
        if type(made).train_step is keras_of(made).Model.train_step:
            raise  # fit calls the model, too
        raise NotBuiltError(f"it is not built, and calling it with a batch raised {describe(error)}") from error


def make_comparable(made: Any, drawing: Sequence[int] = ()) -> None:
    """Run layers with random numbers as at inference, and synchronize BatchNormalization.

    Random numbers per replica and moments of a share of the batch are correct, but differ from one device.

    Args:
        made: a copy of the job's model.
        drawing: places in :func:`layers_of` of further layers that draw random numbers.
    """
    layers = layers_of(made)
    for layer in (*random_layers(made), *(layers[place] for place in drawing)):
        _still(layer)
    alone = list(normalisations(made))
    if alone:
        separate_losses(made)
    for layer in alone:
        layer.synchronized = True
        if getattr(layer, "fused", None):
            layer.fused = False  # Keras 2 sets this when the layer is made, and its fused code never synchronises


def _still(layer: Any) -> None:
    call = layer.call
    parameters = list(inspect.signature(call).parameters)
    place = parameters.index("training") if "training" in parameters else len(parameters)

    def at_inference(*arguments: Any, **named: Any) -> Any:
        if len(arguments) > place:
            arguments = (*arguments[:place], False, *arguments[place + 1 :])
        elif place < len(parameters) or "training" in named:
            named["training"] = False  # a cell of Keras 2 does not get it, and draws all the same
        return call(*arguments, **named)

    object.__setattr__(layer, "call", at_inference)
